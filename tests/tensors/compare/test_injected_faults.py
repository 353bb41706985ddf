"""Faults in the sources of real architectures: a sample of `benchmarks.precision`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from benchmarks.precision.architectures import ARCHITECTURES
from benchmarks.precision.faults import FORMS, find_sites
from benchmarks.precision.score import judge_fault, judge_healthy

_LLAMA, _T5 = (item for item in ARCHITECTURES if item.name in ("llama", "t5"))


@pytest.mark.parametrize("name", ["summed in a loop", "flushed", "stored in bfloat16"])
def test_the_line_of_a_fault_is_named(name: str, tmp_path: Path) -> None:
    """In two layers at once: only the line, not one of its modules, explains the error."""
    sites = find_sites(_LLAMA, tmp_path)
    form = next(item for item in FORMS if item.name == name)
    verdict = judge_fault(sites[len(sites) // 2], form, tmp_path, 0)
    assert verdict.outcome == "named", verdict.about


def test_a_healthy_architecture_is_left_alone() -> None:
    """T5 writes into integers in place: what runs beside the step may not write a second time."""
    assert judge_healthy(_T5, (torch.float32,), seeds=(0,)) == []
