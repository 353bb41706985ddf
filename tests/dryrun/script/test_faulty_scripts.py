"""Some of the faulty scripts of the benchmark with their right twins; the rest take minutes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from torchstone.core.report import Report

SUITE = Path(__file__).parents[3] / "benchmarks" / "scripts"
CASES = (
    "tuned/batch_norm_of_one_sample",
    "tuned/constant_is_no_buffer",
    "tuned/gate_written_in_place",
    "tuned/weighted_error_of_column_and_row",
    "held_out/probabilities_under_autocast",
    "held_out/state_kept_across_batches",
)


def test_the_suite_is_complete() -> None:
    folders = [folder for part in SUITE.iterdir() for folder in part.iterdir()]
    assert len(folders) >= 20
    for folder in folders:
        head = (folder / "faulty.py").read_text("utf-8")
        assert re.search(r"^Mechanism: \S", head, re.M), folder
        assert re.search(r"^Expect: DR\d", head, re.M), folder
        assert (folder / "right.py").read_text("utf-8") != head


@pytest.mark.parametrize("case", CASES)
def test_the_fault_is_found_and_the_twin_is_not_accused(
    case: str, run: Callable[..., Report]
) -> None:
    faulty = (SUITE / case / "faulty.py").read_text("utf-8")
    expected = re.search(r"^Expect: (.*)$", faulty, re.M)
    assert expected
    found = run(faulty, no_fixes=True, max_paths=1).findings
    assert {item.rule for item in found} & set(expected[1].split())
    twin = run((SUITE / case / "right.py").read_text("utf-8"), max_paths=1)
    assert twin.findings == ()
    assert twin.gaps == ()
