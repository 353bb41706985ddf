"""Problems of ordinary sizes are judged within the referee's memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.kernels.referees import loaded
from torchstone.kernels import Candidate, verify
from torchstone.kernels.harness.inputs.planning import add_case, load_plan, open_plan
from torchstone.kernels.harness.inputs.sizing import plan_families
from torchstone.kernels.harness.inputs.slender import plan_slender
from torchstone.kernels.problem import problem_from_source
from torchstone.kernels.sessions.bad_problem import LargeProblemError
from torchstone.kernels.sessions.workshop import Workshop

RELU = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn({size})]


def get_init_inputs():
    return []
"""
CLAMP = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        {check}
        return x.clamp(min=0){wrong}
"""
ONLY_ITS_OWN = 'assert x.shape == (600, 600), "no other size"'


@pytest.mark.parametrize(
    ("size", "cut", "largest"), [("500, 500", False, 500), ("600, 600", True, 61)]
)
def test_families_of_large_problems_have_smaller_sizes(size: str, cut: bool, largest: int) -> None:
    plan = loaded(RELU.format(size=size), "torch", 2).plan
    planned = plan_families(plan, 2, 2, 1)
    assert planned.cut is cut
    negative = next(case for case in planned.cases if case.family == "negative")
    assert max(negative.sizes) == largest
    if cut:
        whole = plan_families(plan, 3, 0, 1)
        negative = next(case for case in whole.cases if case.family == "negative")
        assert max(negative.sizes) == 600


@pytest.mark.parametrize(
    ("check", "wrong", "accepted"),
    [("pass", "", True), (ONLY_ITS_OWN, "", True), (ONLY_ITS_OWN, " * (x < 50)", False)],
)
def test_a_large_problem_is_judged(
    tmp_path: Path, workshop: Workshop, check: str, wrong: str, accepted: bool
) -> None:
    problem, candidate = tmp_path / "problem.py", tmp_path / "candidate.py"
    problem.write_text(RELU.format(size="600, 600"))
    candidate.write_text(CLAMP.format(check=check, wrong=wrong))
    verdict = verify(problem, candidate, "torch", seeds=2, workshop=workshop)
    assert verdict.accepted is accepted


def test_a_reference_without_memory_ends_without_a_verdict(workshop: Workshop) -> None:
    problem = problem_from_source(RELU.format(size="20000, 20000"), "huge")
    candidate = Candidate(CLAMP.format(check="pass", wrong=""), "torch")
    verdict = verify(problem, candidate, memory="1G", workshop=workshop)
    assert (verdict.outcome, verdict.exit_code) == ("none", 3)
    assert "--memory" in verdict.report().to("text")


def test_a_problem_that_is_too_large_is_told_so() -> None:
    said = str(LargeProblemError("huge", 6 << 30))
    assert "more than 6 GiB" in said
    assert "--memory" in said


NORM = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm((64, 600))

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.rand(48, 64, 600)]


def get_init_inputs():
    return []
"""


def test_what_cannot_be_cut_is_cut_elsewhere() -> None:
    plan = open_plan(NORM, "torch", 5)
    found = load_plan(plan, 1 << 16)
    assert (found.seeds, found.heavy, found.small) == (2, True, True)
    assert [case.shapes for case in found.cases] == ["2×64×600"] * 2


CUBE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.clamp(min=0).sum(-1)


def get_inputs():
    return [torch.rand(16, 16, 16)]


def get_init_inputs():
    return []
"""


def test_a_size_that_three_sides_have_does_not_grow_to_a_thousand() -> None:
    plan = loaded(CUBE, "torch", 2).plan
    sizes = {case.size for case in plan_slender(plan).cases}
    assert {1, 2, 3, 5, 131} == sizes  # a cube of 257 would hold seventeen million


WIDENED = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 8192)

    def forward(self, x):
        return self.linear(x).amax(-1)


def get_inputs():
    return [torch.rand(64, 48, 64)]


def get_init_inputs():
    return []
"""


def test_inputs_are_cut_where_a_step_of_the_reference_is_large() -> None:
    plan = open_plan(WIDENED, "torch", 2)
    found = load_plan(plan, 0)
    # the width is that of the weights; the batch is as large by chance, and is cut alone
    assert [case.shapes for case in found.cases] == ["16×11×64"] * 2
    assert found.small
    assert add_case(plan, "larger", 0, [torch.rand(2, 11, 64)], resized=True) is not None
    assert add_case(plan, "larger", 0, [torch.rand(2, 1031, 64)], resized=True) is None
