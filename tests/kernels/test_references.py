"""References are not all alike: chance, structure, plain numbers, nesting and None are told apart."""

from __future__ import annotations

import pytest
import torch

from torchstone.core.errors import InputError
from torchstone.kernels import Candidate, Problem, Verdict, verify
from torchstone.kernels.harness.structure import structures_of
from torchstone.kernels.workshop import Workshop

FORM = """import torch


class Model(torch.nn.Module):
    def forward(self, {names}):
        {answer}


def get_inputs():
    {inputs}


def get_init_inputs():
    return []
"""
CANDIDATE = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, {names}):
        {answer}
"""


def judged(workshop: Workshop, names: str, inputs: str, reference: str, candidate: str) -> Verdict:
    source = FORM.format(names=names, answer=reference, inputs=inputs)
    problem = Problem("small", source, "torch")
    made = Candidate(CANDIDATE.format(names=names, answer=candidate), "torch")
    return verify(problem, made, seeds=2, workshop=workshop)


@pytest.mark.usefixtures("few_sizes")
@pytest.mark.parametrize(
    "answer", ["return torch.dropout(x, 0.5, True)", "return x + torch.rand_like(x)"]
)
def test_a_random_reference_is_the_problems_fault(answer: str, workshop: Workshop) -> None:
    with pytest.raises(InputError, match="draws its answer at random"):
        judged(workshop, "x", "return [torch.randn(8, 8)]", answer, "return x")


@pytest.mark.usefixtures("few_sizes")
@pytest.mark.parametrize(
    ("inputs", "reference", "candidate"),
    [
        ("return [torch.randn(16, 16).tril(), torch.randn(16, 4)]", "return x @ y",
         "return x.tril() @ y"),
        ("a = torch.randn(16, 16); return [a + a.T, torch.randn(16, 4)]", "return x @ y",
         "return x.mT @ y"),
        ("return [torch.randn(16).sort().values, torch.randn(16)]", "return x.max() * y",
         "return x[-1] * y"),
    ],
)  # fmt: skip
def test_a_structure_that_the_problem_promises_may_be_used(
    inputs: str, reference: str, candidate: str, workshop: Workshop
) -> None:
    verdict = judged(workshop, "x, y", inputs, reference, candidate)
    assert verdict.accepted, verdict.error_log()


@pytest.mark.usefixtures("few_sizes")
def test_a_plain_number_is_no_constant(workshop: Workshop) -> None:
    inputs = "return [torch.randn(8, 8), 0.5]"
    right = judged(workshop, "x, s", inputs, "return x * s", "return s * x")
    assert right.accepted, right.error_log()
    wrong = judged(workshop, "x, s", inputs, "return x * s", "return x * 0.5")
    assert not wrong.accepted
    assert "scalars" in wrong.error_log()


@pytest.mark.usefixtures("few_sizes")
def test_nested_answers_and_none_are_compared(workshop: Workshop) -> None:
    inputs, answer = "return [torch.randn(8, 8)]", "return {'a': [x + 1, None], 'b': (x * 2,)}"
    right = judged(workshop, "x", inputs, answer, answer.replace("x + 1", "1 + x"))
    assert right.accepted, right.error_log()
    for other in ("{'a': [x + 1, x], 'b': (x * 2,)}", "{'a': [x + 1, None], 'b': (x * 3,)}",
                  "{'a': [x + 1, None]}"):  # fmt: skip
        assert not judged(workshop, "x", inputs, answer, f"return {other}").accepted


def test_structures_are_known_by_what_all_draws_share() -> None:
    def names(*draws: torch.Tensor) -> list[str]:
        return structures_of([[draw] for draw in draws]).names

    square = torch.randn(6, 6)
    assert names(square.tril(), torch.randn(6, 6).tril()) == ["lower triangular"]
    assert names(square.tril(), square) == []
    assert names(square @ square.T + torch.eye(6)) == ["positive definite"]
    assert names(square + square.T) == ["symmetric"]
    assert names(torch.eye(6)[torch.tensor([1, 4, 2])]) == ["one-hot"]
    assert names(torch.randn(3, 9).sort().values) == ["sorted"]


@pytest.mark.parametrize(
    "made",
    [torch.randn(6, 6).tril(), torch.randn(6, 6).triu(), torch.eye(6) * 2 + 0.1,
     torch.randn(3, 9).sort().values, torch.eye(6)[torch.tensor([1, 4, 2])]],
)  # fmt: skip
def test_a_structure_is_put_back(made: torch.Tensor) -> None:
    kept = structures_of([[made]])
    [restored] = kept.restored([torch.randn(made.shape)])
    assert structures_of([[restored]]).names == kept.names
