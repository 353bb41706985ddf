"""A referee in the process of a test."""

from __future__ import annotations

from torchstone.kernels.harness.inputs.planning import load_plan, open_plan
from torchstone.kernels.harness.judging.full_size_desk import FullSize
from torchstone.kernels.harness.judging.referee import Referee
from torchstone.kernels.harness.shared_arrays import Mapped


def loaded(source: str, framework: str, seeds: int, most_elements: int = 0) -> Referee:
    """A problem with its own inputs drawn."""
    plan = open_plan(source, framework, seeds)
    load_plan(plan, most_elements)
    return Referee(plan, FullSize(plan, Mapped(()), 1 << 30))
