"""The tolerance follows what rounding does to each element: small answers are held to their own size."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from tests.kernels.referees import loaded
from torchstone.kernels.harness.inputs.sizing import plan_families
from torchstone.kernels.harness.judging.referee import Referee, judge_answer
from torchstone.kernels.harness.values import encode
from torchstone.kernels.messages.trees import AnswerTree
from torchstone.kernels.problem import load_problem

Kernel = Callable[..., torch.Tensor]
ONE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return {body}


def get_inputs():
    return [torch.randn(24, 40)]


def get_init_inputs():
    return []
"""
NUMPY = """import numpy as np


class Model:
    def __call__(self, x):
        return np.tanh(x) * x


def get_inputs():
    return [np.random.randn(24, 40).astype(np.float32)]


def get_init_inputs():
    return []
"""


def planned(source: str, framework: str = "torch") -> Referee:
    """A problem with the families of values, in this process."""
    referee = loaded(source, framework, 2, 1 << 20)
    plan_families(referee.plan, 1, 2, 0)
    return referee


def wrong_families(referee: Referee, kernel: Kernel) -> set[str]:
    """Families in which a kernel's answers are too far off."""
    found = set()
    for case in referee.plan.cases:
        if case.poisoned or case.layout != "contiguous":
            continue
        given = [torch.as_tensor(item) for item in case.inputs]
        answer = kernel(*given)
        buffers: list[bytes] = []
        kept = answer.numpy() if referee.plan.reference.framework == "numpy" else answer
        tree = AnswerTree("*", [encode(kept, buffers)])
        if any(item.error for item in judge_answer(referee, case.number, tree, buffers).outputs):
            found.add(case.family)
    return found


def half_below(y: torch.Tensor, limit: float = 1e-3) -> torch.Tensor:
    """Small values in half precision: off by a part in two thousand, or wholly below 6e-8."""
    return torch.where(y.abs() < limit, y.half().float(), y)


REFERENCES: dict[str, Kernel] = {
    "torch.relu(x)": torch.relu,
    "torch.softmax(x, -1)": lambda x: torch.softmax(x, -1),
    "torch.nn.functional.silu(x)": torch.nn.functional.silu,
    "x @ x.mT": lambda x: x @ x.mT,
    "x.cumsum(-1)": lambda x: x.cumsum(-1),
    "x * x.mean(-1, keepdim=True)": lambda x: x * x.mean(-1, keepdim=True),
}


@pytest.mark.parametrize("body", REFERENCES)
def test_small_values_in_half_precision_are_refused(body: str) -> None:
    referee = planned(ONE.format(body=body))
    right = REFERENCES[body]
    assert wrong_families(referee, right) == set()
    assert wrong_families(referee, lambda x: half_below(right(x)))
    assert wrong_families(referee, lambda x: half_below(right(x), 1e-5))
    assert wrong_families(referee, lambda x: torch.where(right(x).abs() < 1e-6, 0.0, right(x)))


def test_numbers_below_the_smallest_normal_one_may_become_zero() -> None:
    referee = planned(ONE.format(body="x * 1e-36"))

    def flushed(x: torch.Tensor, limit: float) -> torch.Tensor:
        y = x * 1e-36
        return torch.where(y.abs() < limit, 0.0, y)

    assert wrong_families(referee, lambda x: flushed(x, 1.17e-38)) == set()
    assert wrong_families(referee, lambda x: flushed(x, 1e-36))


def test_small_values_of_numpy_are_held_to_their_size_as_well() -> None:
    referee = planned(NUMPY, "numpy")
    assert wrong_families(referee, lambda x: torch.tanh(x) * x) == set()
    assert wrong_families(referee, lambda x: half_below(torch.tanh(x) * x, 1e-5))


def running_logsumexp(x: torch.Tensor) -> torch.Tensor:
    found = [x[..., 0]] if x.shape[-1] else []
    for i in range(1, x.shape[-1]):
        top = torch.maximum(found[-1], x[..., i])
        found.append(top + torch.log((found[-1] - top).exp() + (x[..., i] - top).exp()))
    return torch.stack(found, -1) if found else x.clone()


HONEST: dict[str, tuple[str, Kernel]] = {
    "gelu by erf": (
        "torch.nn.functional.gelu(x)",
        lambda x: 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5))),
    ),
    "tanh by sigmoid": ("torch.tanh(x)", lambda x: 2 * torch.sigmoid(2 * x) - 1),
    "elu by exp": ("torch.nn.functional.elu(x)", lambda x: torch.where(x > 0, x, x.exp() - 1)),
    "softplus by log": (
        "torch.nn.functional.softplus(x)",
        lambda x: torch.where(x > 20, x, torch.log(1 + x.clamp(max=20).exp())),
    ),
    "log1p by log": ("torch.log1p(x.abs())", lambda x: torch.log(1 + x.abs())),
    "expm1 by exp": ("torch.expm1(x.clamp(max=20))", lambda x: x.clamp(max=20).exp() - 1),
    "logarithm of a sum": (
        "torch.logaddexp(x, x.flip(0) - 40)",
        lambda x: (t := torch.maximum(x, x.flip(0) - 40)) + torch.log((x - t).exp() + (x.flip(0) - 40 - t).exp()),
    ),
    "running logarithm": ("torch.logcumsumexp(x, -1)", running_logsumexp),
    "division by product": ("x / 3.7", lambda x: x * (1 / 3.7)),
    "layer norm by hand": (
        "torch.nn.functional.layer_norm(x, (x.shape[-1],))",
        lambda x: (x - x.mean(-1, keepdim=True)) * (x.var(-1, keepdim=True, correction=0) + 1e-5).rsqrt(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_a_textbook_formula_is_accepted(name: str) -> None:
    body, kernel = HONEST[name]
    assert wrong_families(planned(ONE.format(body=body)), kernel) == set()


def test_a_reference_that_is_far_off_excuses_only_the_elements_where_it_is() -> None:
    """A difference of squares in the reference's own single precision, beside plain elements."""
    body = "torch.where(x > 0, (x + 1000.0) - 1000.0, x)"
    referee = planned(ONE.format(body=body))
    exact: Kernel = lambda x: torch.where(x > 0, (x + 1000.0) - 1000.0, x)  # noqa: E731
    assert wrong_families(referee, exact) == set()
    assert wrong_families(referee, lambda x: torch.where(x > 0, exact(x), x * (1 + 2e-6)))


@pytest.mark.parametrize(("name", "length"), [("exp_add", 1), ("row_sum", 250), ("rms_norm", 88)])
def test_sums_of_numpy_are_counted(name: str, length: int) -> None:
    problem = load_problem(name)
    referee = loaded(problem.source, "numpy", 2, 1 << 20)
    assert referee.plan.oracle.length == length
