"""The problem's own sizes: slices, sums of blocks, budgets of memory and of work, three kinds of verdicts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.kernels import Candidate, verify
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.harness.judging.block_sums import keep_output
from torchstone.kernels.harness.judging.slices import find_slicing, sampled_rows
from torchstone.kernels.harness.reference.running import Reference
from torchstone.kernels.problem import problem_from_source
from torchstone.kernels.sessions.bad_problem import LargeProblemError
from torchstone.kernels.sessions.effort import Effort
from torchstone.kernels.sessions.full_size_run import prepare_question
from torchstone.kernels.sessions.memory import memory_budget
from torchstone.kernels.sessions.workshop import Workshop
from torchstone.kernels.verdicts.verdict import Outcome
from torchstone.kernels.verifier import outcome_of

PROBLEM = """import torch


class Model(torch.nn.Module):
    def forward(self, {arguments}):
        return {expression}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def problem(arguments: str, expression: str, inputs: str) -> str:
    return PROBLEM.format(arguments=arguments, expression=expression, inputs=inputs)


@pytest.mark.parametrize(
    ("expression", "places"),
    [
        ("a @ b", ((0, 0),)),
        ("torch.relu(a)", ((0, 0), (1, 0))),
        ("a.t() @ b", ((0, 1),)),
        ("torch.softmax(a, dim=0)", ((0, 1), (1, 1))),
        ("a - a.mean()", None),
    ],
)
def test_a_side_is_sliced_where_the_reference_lets_it(expression: str, places: object) -> None:
    reference = Reference.load(
        problem("a, b", expression, "torch.randn(6, 6), torch.randn(6, 6)"), "torch"
    )
    inputs = reference.inputs(0)
    found = find_slicing(reference, inputs, [reference.run_once(inputs)])
    assert (found.places if found else None) == places


def test_rows_stand_at_the_ends_and_beside_edges() -> None:
    rows = sampled_rows(4096, 16)
    assert {0, 4095, 2048} <= set(rows)
    assert len(rows) == 16
    assert sampled_rows(3, 16) == [0, 1, 2]


@pytest.mark.parametrize("spare_bytes", [1 << 30, 0], ids=["whole", "sums"])
def test_one_wrong_element_or_two_in_other_places_are_doubtful(spare_bytes: int) -> None:
    right = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    kept = keep_output(right, spare_bytes)
    assert kept.doubtful(right * (1 + 1e-7), 1e-5) == []
    for change in (lambda x: x.index_fill(0, torch.tensor([700]), 0.0), lambda x: x.roll(1)):
        assert kept.doubtful(change(right.clone()), 1e-5)


def test_errors_that_cancel_under_the_weights_of_another_answer_are_doubtful() -> None:
    right = torch.randn(64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    known, other = keep_output(right, 0), keep_output(right, 0)
    wrong = right.clone()
    wrong[3] += 1 / known.weights[3]
    wrong[40] -= 1 / known.weights[40]
    assert known.doubtful(wrong, 1e-5) == []
    assert other.doubtful(wrong, 1e-5)


def result(gate: str, status: str) -> GateResult:
    return GateResult(gate, status)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("results", "outcome"),
    [
        ([("oracle", "passed"), ("size", "passed")], "accepted"),
        ([("oracle", "passed"), ("size", "gap")], "smaller"),
        ([("oracle", "failed"), ("size", "gap")], "rejected"),
        ([("build", "gap")], "none"),
        ([("stale", "undecided"), ("size", "passed")], "accepted"),
    ],
)
def test_a_verdict_has_three_values_and_none(
    results: list[tuple[str, str]], outcome: Outcome
) -> None:
    assert outcome_of(tuple(result(*item) for item in results)) == outcome


def test_too_little_memory_is_a_limit_and_no_fault(workshop: Workshop) -> None:
    given = problem("x", "torch.relu(x)", "torch.randn(160 << 20)")
    source = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x.clamp(min=0)\n"
    found = verify(problem_from_source(given, "large"), Candidate(source, "torch"), seeds=2,
                   memory="1G", workshop=workshop)  # fmt: skip
    assert (found.outcome, found.exit_code, found.failed) == ("smaller", 3, ())
    assert (
        "--memory" in found.results[[item.gate for item in found.results].index("size")].detail.en
    )


def test_memory_is_read_with_its_unit() -> None:
    assert memory_budget("12G") == memory_budget("12") == memory_budget("12 GiB") == 12 << 30
    assert memory_budget() >= 1 << 30
    with pytest.raises(UsageError, match="--memory"):
        memory_budget("lots")


def test_work_and_sleep_count_and_waiting_does_not() -> None:
    mine = Effort((os.getpid(),), 1e9)
    assert not mine.is_up()
    assert Effort((os.getpid(),), -1.0).is_up()
    assert Path(f"/proc/{os.getpid()}/stat").exists()


WEIGHTED = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(7))

    def forward(self, x):
        return {expression}


def get_inputs():
    return [torch.randn(9, 7)]


def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("expression", "gate", "status"),
    [
        ("(x * self.weight).amax()", "stale", "passed"),
        ("torch.relu(-self.weight) * x", "weights", "undecided"),
        ("self.weight * x", "weights", "passed"),
        ("torch.relu(-self.weight * x * x)", "families", "undecided"),
    ],
    ids=[
        "a maximum moves with another draw",
        "no weight is ever seen",
        "weights are seen",
        "zero for every input",
    ],
)
@pytest.mark.usefixtures("few_sizes")
def test_gates_look_where_the_reference_moves(
    expression: str, gate: str, status: str, workshop: Workshop
) -> None:
    source = WEIGHTED.format(expression=expression)
    candidate = source.partition("def get_inputs")[0].replace("class Model(", "class ModelNew(")
    found = verify(
        problem_from_source(source, "weighted"),
        Candidate(candidate, "torch"),
        seeds=3,
        workshop=workshop,
    )
    assert {item.gate: item.status for item in found.results}[gate] == status


def test_a_reference_that_runs_out_of_memory_at_its_own_size_is_a_limit() -> None:
    class Asked:
        full = None
        memory_bytes = 1 << 30

        def ask_referee(self, *_: object) -> None:
            raise LargeProblemError("huge", self.memory_bytes)

    found = prepare_question(Asked())  # type: ignore[arg-type]
    assert isinstance(found, Text)
    assert "--memory" in found.en
    assert "--memory" in found.zh
