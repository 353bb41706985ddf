"""How far an answer may be off, and the judgement of one output by that."""

from __future__ import annotations

import torch

from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.cases import Case
from torchstone.kernels.harness.inputs.planning import Plan, length_of, own_error_of
from torchstone.kernels.harness.judging import judge
from torchstone.kernels.harness.judging.choices import chosen_places
from torchstone.kernels.messages.facts import OutputFacts


def allowed_units(plan: Plan, case: Case, output: int) -> float:
    """How many units an output may be off."""
    dtype = case.answers[output].reference.dtype
    own, length = own_error_of(plan, case), length_of(plan, case)
    return plan.oracle.allowed(own, plan.reduced_error, dtype, length)


def tolerance_for(plan: Plan, case: Case, output: int, got: torch.Tensor) -> float:
    """How many units are allowed: a bound that suffices, and all that is known where none does."""
    answer = case.answers[output]
    least = _least_allowed(plan, case, output)
    while not judge.is_within(answer, got, least):
        if answer.runs is None or not answer.runs.once_more():
            return allowed_units(plan, case, output)
    return least


def _least_allowed(plan: Plan, case: Case, output: int) -> float:
    """So many units are allowed whatever the reference's own error and the length of sums are."""
    dtype = case.answers[output].reference.dtype
    length = case.length or int(case.family in families.LONGER)
    return plan.oracle.allowed(0.0, plan.reduced_error, dtype, length)


def judge_output(
    plan: Plan, case: Case, output: int, got: torch.Tensor, tolerance: float | None = None
) -> OutputFacts:
    """What is wrong with one output of the right form."""
    chosen = chosen_places(plan, output, case, got)
    known = tolerance_for(plan, case, output, got) if tolerance is None else tolerance
    return judge.judge_output(case, output, got, known, chosen)
