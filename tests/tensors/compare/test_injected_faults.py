"""Faults in the sources of real architectures: a sample of `benchmarks.precision`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from benchmarks.precision.architectures import ARCHITECTURES
from benchmarks.precision.faults import FORMS, find_sites
from benchmarks.precision.score import judge_fault, judge_healthy

_SAMPLE = [item for item in ARCHITECTURES if item.name in ("llama", "t5", "vit")]


@pytest.mark.parametrize("place", range(len(_SAMPLE)), ids=[item.name for item in _SAMPLE])
def test_the_line_of_a_fault_is_named(place: int, tmp_path: Path) -> None:
    """In two layers at once: only the line, not one of its modules, explains the error."""
    sites = find_sites(_SAMPLE[place], tmp_path)
    site = sites[len(sites) // 2]
    for form in FORMS[place :: len(_SAMPLE)]:
        verdict = judge_fault(site, form, tmp_path, 0)
        assert verdict.outcome == "named", f"{site} {form}: {verdict.about}"


def test_a_healthy_architecture_is_left_alone() -> None:
    """T5 writes into integers in place: what runs beside the step may not write a second time."""
    assert judge_healthy(_SAMPLE[1], (torch.float32, torch.bfloat16)) == []
