"""A wrong answer comes with its likely cause, found by making the mistake on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.kernels.referees import loaded
from tests.kernels.test_rounded_steps import ONE
from torchstone.core.codec import to_data
from torchstone.kernels import verify
from torchstone.kernels.harness.judging.diagnosis import causes_of
from torchstone.kernels.harness.judging.referee import judge_answer
from torchstone.kernels.harness.values import encode
from torchstone.kernels.messages.facts import Cause, Facts, PlannedCase
from torchstone.kernels.messages.trees import AnswerTree
from torchstone.kernels.problem import load_problem
from torchstone.kernels.sessions.calls import Call
from torchstone.kernels.sessions.workshop import Workshop
from torchstone.kernels.verdicts.causes import _WORDS, advice_for

Kernel = Callable[[torch.Tensor], torch.Tensor]


def plain_softmax(x: torch.Tensor) -> torch.Tensor:
    return x.exp() / x.exp().sum(-1, keepdim=True)


def tail_left_out(x: torch.Tensor) -> torch.Tensor:
    found = torch.relu(x)
    found[:, 32:] = -1.0
    return found


SOFTMAX, LAYER = "torch.softmax(x, -1)", "torch.nn.functional.layer_norm(x, (x.shape[-1],))"
MISTAKES: dict[str, tuple[str, Kernel, float]] = {
    "axis": (SOFTMAX, lambda x: torch.softmax(x, 0), 1.0),
    "maximum": (SOFTMAX, plain_softmax, 100.0),
    "factor": (SOFTMAX, lambda x: torch.softmax(x, -1) * 0.5, 1.0),
    "sign": ("torch.sin(x)", lambda x: -torch.sin(x), 1.0),
    "offset": ("x.cumsum(-1)", lambda x: x.cumsum(-1) + 1.0, 1.0),
    "input": ("torch.sin(x)", lambda x: x.clone(), 1.0),
    "constant": ("torch.relu(x)", torch.zeros_like, 1.0),
    "shifted": ("x * 2", lambda x: (x * 2).roll(1, -1), 1.0),
    "flipped": ("x * 2", lambda x: (x * 2).flip(0), 1.0),
    "transposed": ("(x @ x.mT).tril()", lambda x: (x @ x.mT).triu(), 1.0),
    "correction": ("x.var(-1)", lambda x: x.var(-1, correction=0), 1.0),
    "epsilon": (LAYER, lambda x: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True, correction=0), 1e-3),
    "one pass": ("x.var(-1)", lambda x: (x.square().mean(-1) - x.mean(-1).square()) * 40 / 39, 1.0),
    "precision": ("x @ x.mT", lambda x: x.half().float() @ x.mT, 1.0),
    "range": ("torch.relu(x)", tail_left_out, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("code", MISTAKES)
def test_the_mistake_is_named(code: str) -> None:
    body, kernel, scale = MISTAKES[code]
    inputs = "torch.randn(24, 40) * {scale} + {start}"
    start = 3000.0 if code == "one pass" else 0.0  # where squares cancel
    source = ONE.format(body=body).replace(
        "torch.randn(24, 40)", inputs.format(scale=scale, start=start)
    )
    referee = loaded(source, "torch", 2, 1 << 20)
    case = referee.plan.cases[0]
    found = causes_of(referee.plan.reference, case, 0, kernel(case.inputs[0]))
    assert [item.code for item in found] == [code]
    words = _WORDS[code](found[0])
    for text in (words.why, words.remedy):
        assert text.en
        assert text.zh
        assert text.en != text.zh


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_an_answer_that_is_infinite_everywhere_can_be_told(value: float) -> None:
    referee = loaded(ONE.format(body=SOFTMAX), "torch", 2, 1 << 20)
    case = referee.plan.cases[0]
    found = causes_of(referee.plan.reference, case, 0, torch.full_like(case.inputs[0], value))
    json.dumps([to_data(item) for item in found], allow_nan=False)


def test_a_right_answer_has_no_cause() -> None:
    referee = loaded(ONE.format(body=SOFTMAX), "torch", 2, 1 << 20)
    case = referee.plan.cases[0]
    assert not causes_of(referee.plan.reference, case, 0, torch.softmax(case.inputs[0], -1))


def test_the_first_wrong_element_is_the_first_and_the_largest_error_is_told_apart() -> None:
    referee = loaded(ONE.format(body="x * 2"), "torch", 2, 1 << 20)
    case = referee.plan.cases[0]
    answer = case.inputs[0] * 2
    answer[3, 4] += 1e-3
    answer[20, 1] += 1.0
    buffers: list[bytes] = []
    tree = AnswerTree("*", [encode(answer, buffers)])
    fact = judge_answer(referee, 0, tree, buffers).outputs[0].error
    assert fact is not None
    assert fact.index == [3, 4]
    assert fact.units > 100 * fact.here > 100 * fact.allowed  # type: ignore[operator]
    assert fact.count == 2


@pytest.mark.parametrize("family", ["scalars", "truths", "strided", "larger", "tiny", "zeros"])
def test_a_family_that_fails_alone_says_what_it_tells(family: str) -> None:
    words = advice_for([Call(PlannedCase(0, family, 0, "2×2"))])
    assert words.why.en
    assert words.why.zh


def test_the_cause_comes_before_the_family() -> None:
    case = PlannedCase(0, "tiny", 0, "2×2")
    words = advice_for([Call(case), Call(case, facts=Facts(causes=[Cause("sign")]))])
    assert "sign" in words.why.en


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("torch.exp(x) / (torch.exp(x).sum(-1, keepdim=True) + 0.02)", ""),
        ("torch.softmax(x.half().float(), -1)", "float16"),
    ],
    ids=["a forgotten mask", "ten bits"],
)
def test_a_rounding_goes_both_ways(body: str, said: str) -> None:
    """A sum that is a little too large makes every value too small: no rounding does."""
    known = load_problem("softmax")
    referee = loaded(known.source, known.framework, 2, 1 << 16)
    case = referee.plan.cases[0]
    got = eval(body, {"torch": torch, "x": case.inputs[0]}).double()
    found = [
        item for item in causes_of(referee.plan.reference, case, 0, got) if item.code == "precision"
    ]
    assert [said in item.format for item in found] == ([True] if said else [])


SCALED = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8))

    def forward(self, x):
        return torch.tanh(x) * self.weight


def get_inputs():
    return [torch.randn(6, 8)]


def get_init_inputs():
    return []
"""


def test_weights_of_other_names_are_told(tmp_path: Path, workshop: Workshop) -> None:
    problem, candidate = tmp_path / "problem.py", tmp_path / "candidate.py"
    problem.write_text(SCALED)
    candidate.write_text(
        SCALED.replace("class Model(", "class ModelNew(")
        .replace("weight", "w")
        .replace("torch.randn(8)", "torch.ones(8)")
        .partition("def get_inputs")[0]
    )
    verdict = verify(problem, candidate, "torch", seeds=2, workshop=workshop)
    (oracle,) = (item for item in verdict.results if item.gate == "oracle")
    assert oracle.status == "failed"
    assert "weights may not be the problem's" in oracle.why.en
