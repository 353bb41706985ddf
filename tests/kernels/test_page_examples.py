"""The examples of the page about kernels are accepted, and stand on both pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchstone.kernels import Candidate, verify
from torchstone.kernels.candidate import known_implementation, recognised_language
from torchstone.kernels.sessions.workshop import Workshop

ROOT = Path(__file__).parents[2]


def examples(page: str) -> dict[str, str]:
    """The candidates of a page, by what they are written in."""
    found = re.findall(r"```python\n(import [\s\S]+?)```", (ROOT / page).read_text("utf-8"))
    return {recognised_language(text) + " +" * ("CPP_SOURCE" in text): text for text in found}


@pytest.mark.usefixtures("few_sizes")
@pytest.mark.parametrize("language", ["triton", "numba", "c", "c +", "torch"])
def test_the_examples_of_the_page_are_accepted(language: str, workshop: Workshop) -> None:
    """One language is enough to run: the other page must show the same examples."""
    text = examples("docs/kernel.md")[language]
    assert examples("docs/zh/kernel.md").keys() == examples("docs/kernel.md").keys()
    candidate = Candidate(
        text, known_implementation("numpy" if language == "torch" else language[0:6].rstrip(" +"))
    )
    verdict = verify("relu", candidate, seeds=2, workshop=workshop)
    assert verdict.accepted, verdict.error_log()
