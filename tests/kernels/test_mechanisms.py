"""What one family alone shows: a right way passes all of it, and a wrong way fails there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from torchstone.kernels import larger
from torchstone.kernels.harness import families, growing, lines, scales, whole
from torchstone.kernels.harness.referee import Referee
from torchstone.kernels.harness.values import encode
from torchstone.kernels.problem import load_problem

Kernel = Callable[..., Any]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in the referee's process: on arrays this small more of them only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@functools.cache
def planned(problem: str, family: str) -> Referee:
    """The problem with its families, as far as the one in question, as cheap kernels get them."""
    known = load_problem(problem)
    referee = Referee(known.source, known.framework, 2)
    referee.load(0)
    if family == families.LARGER:
        referee.larger(2, 0)
    elif family == families.LENGTHS:
        referee.lengths(larger.LONGEST)
    else:
        referee.plan(2, 2, 0)
    return referee


def failed(problem: str, kernel: Kernel, family: str, plan: str = "") -> list[str]:
    """The shapes of one family at which the kernel is wrong."""
    referee, found = planned(problem, plan or family), []
    for case in referee.cases:
        if case.family != family:
            continue
        buffers: list[bytes] = []
        leaf = encode(kernel(*case.inputs), buffers)
        told = referee.judge(case.number, {"structure": "*", "leaves": [leaf]}, buffers)
        assert not told["form"], told
        if any("error" in item or "whole" in item for item in told["outputs"]):
            found.append(" ".join("×".join(map(str, item.shape)) for item in case.inputs))
    return found


def normed(x: torch.Tensor) -> torch.Tensor:
    parts = x.reshape(x.shape[0], 3, -1).double()
    mean, spread = parts.mean(-1, keepdim=True), parts.var(-1, correction=0, keepdim=True)
    return ((parts - mean) / (spread + 1e-5).sqrt()).reshape(x.shape)


def group_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return (normed(x) * weight[:, None] + bias[:, None]).float()


def group_norm_by_reciprocal(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """The channel is the place times a rounded reciprocal of the length."""
    places = np.arange(x.shape[1] * x.shape[2]).astype(np.float32)
    channel = torch.from_numpy((places * (np.float32(1) / np.float32(x.shape[2]))).astype(np.int64))
    flat = normed(x).reshape(x.shape[0], -1)
    return (flat * weight[channel] + bias[channel]).float().reshape(x.shape)


def rows_backwards(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(x[:, ::-1]).sum(-1)


def rows_beside_the_largest(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A step that all share, from the largest of the whole array."""
    step = np.abs(x).max() / 2.0**31 if x.size else 1.0
    return (np.round(x / (step or 1.0)).sum(-1, dtype=np.float64) * step).astype(np.float32)


def gelu(x: torch.Tensor) -> torch.Tensor:
    return (x.double() * 0.5 * torch.erfc(-x.double() / 2**0.5)).float()


def gelu_in_pieces(x: torch.Tensor) -> torch.Tensor:
    """Taken for a line far out on the left, where it still comes back to zero."""
    return torch.where((x < -11) & (x > -30), -0.001 * (x + 30) / 19, functional.gelu(x))


def product_of_bytes(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.long() @ b.long()).int()


def product_in_floats(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(a.shape[0], b.shape[1])
    for start in range(0, a.shape[1], 32):
        total += a[:, start : start + 32].float() @ b[start : start + 32].float()
    return total.int()


def recurrence(a: torch.Tensor, x: torch.Tensor, memory: int = 1 << 30) -> torch.Tensor:
    out = torch.empty_like(x)
    for first in range(0, x.shape[1], min(memory, max(x.shape[1], 1))):
        state = torch.zeros_like(x[:, 0])
        for step in range(max(0, first - memory), min(x.shape[1], first + memory)):
            state = a[:, step] * state + x[:, step]
            if step >= first:
                out[:, step] = state
    return out


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.double() @ b.double()).float()


def product_in_seven(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Strassen's seven products where all sides are even and not small."""
    if any(side % 2 or side < 64 for side in (*a.shape, *b.shape)):
        return product(a, b)
    h, q, w = a.shape[0] // 2, a.shape[1] // 2, b.shape[1] // 2
    (a1, a2), (a3, a4) = ((part[:, :q], part[:, q:]) for part in (a[:h], a[h:]))
    (b1, b2), (b3, b4) = ((part[:, :w], part[:, w:]) for part in (b[:q], b[q:]))
    one, two, three = (a1 + a4) @ (b1 + b4), (a3 + a4) @ b1, a1 @ (b2 - b4)
    four, five = a4 @ (b3 - b1), (a1 + a2) @ b4
    six, seven = (a3 - a1) @ (b1 + b2), (a2 - a4) @ (b3 + b4)
    top = torch.cat([one + four - five + seven, three + five], 1)
    return torch.cat([top, torch.cat([two + four, one - two + three + six], 1)])


MECHANISMS: list[tuple[str, str, Kernel, Kernel]] = [
    ("group_norm", "lengths", group_norm, group_norm_by_reciprocal),
    ("row_sum", "graded", rows_backwards, rows_beside_the_largest),
    ("gelu", "ladder", gelu, gelu_in_pieces),
    ("matmul_int8", "larger", product_of_bytes, product_in_floats),
    ("linear_recurrence", "larger", recurrence, functools.partial(recurrence, memory=64)),
    ("matmul", "larger", product, product_in_seven),
]


@pytest.mark.parametrize(("problem", "family", "right", "wrong"), MECHANISMS)
def test_one_family_tells_them_apart(
    problem: str, family: str, right: Kernel, wrong: Kernel
) -> None:
    assert failed(problem, right, family) == []
    assert failed(problem, wrong, family)
    assert failed(problem, wrong, "own", family) == []


def test_only_the_lengths_that_round_badly_fail() -> None:
    found = {shape.split()[0].split("×")[-1] for shape in failed(
        "group_norm", group_norm_by_reciprocal, "lengths")}  # fmt: skip
    assert {"41", "47", "55", "61"} <= found
    assert not {"32", "37", "64"} & found


def test_a_block_is_far_larger_and_the_rest_stays() -> None:
    x, y = torch.randn(6, 8), torch.randn(8, 5)
    (one, same), *_ = scales.graded([x, y], 0)
    assert torch.equal(one[:3, :4], x[:3, :4] * 1e6)
    assert torch.equal(one[3:], x[3:])
    assert torch.equal(same, y)
    (same, two), *_ = scales.graded([x, y], 1)
    assert torch.equal(same, x)
    assert torch.equal(two[4:, 2:], y[4:, 2:] * 1e6)
    assert scales.graded([torch.arange(4)], 0) == []
    rows, columns = ((scales.graded([x], turn)[-1][0] / x).round() for turn in (2, 3))
    assert rows[:, 0].tolist() == [1, 100, 1, 1, 100, 1]
    assert columns[0].tolist() == [1, 100, 1, 1, 100, 1, 1, 100]


def test_a_ladder_has_even_steps_and_every_power_of_ten() -> None:
    (x,), *_ = scales.ladder([torch.randn(40, 50)], 0)
    assert float(x.max()) > 19
    assert float(x.min()) < -19
    decades = x.abs().log10().floor().unique()
    assert {-5, -4, -3, -2, -1, 0, 1} <= {int(item) for item in decades}


def test_heavy_sums_have_more_bits_than_a_float_keeps() -> None:
    a = torch.randint(-128, 128, (4, 4099), dtype=torch.int8)
    b = torch.randint(-128, 128, (4099, 4), dtype=torch.int8)
    ranges = whole.ranges_of([[a, b]])
    left, right = whole.heavy([a, b], ranges, ((0, 1), (1, 0)))
    exact = left.long() @ right.long()
    assert int(exact.abs().min()) > 1 << 25
    assert bool((exact.float().long() != exact).any())
    for line in (*left, *right.T):
        assert bool((line > 100).all()) or bool((line < -100).all())


def test_held_lines_have_sums_that_every_order_takes_exactly() -> None:
    x = lines.held(torch.randn(8, 1031), 1)
    assert bool((x == x[:, :1]).all())
    assert x[:4, 0].tolist() == [1.0, 1 - 2.0**-11, 0.0, -1.0]
    assert torch.equal(x.cumsum(1).double(), x.double().cumsum(1))
    ordered, free = torch.arange(9.0), torch.randn(9)
    (made,) = growing.held([ordered, free], families.groups_of([ordered, free])[0])
    assert torch.equal(made[0], ordered)
    assert float(made[1].max()) == 1.0
