"""The first operator that is not finite: which one, where, in which phase, which rows."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from torchstone.observe.non_finite import FirstNonFinite, NonFinite
from torchstone.observe.where import Where

HERE = Where(Path(__file__).parent)


def look(program: str, infinities: bool = False) -> list[NonFinite]:
    """What is found in a program of several lines."""
    found: list[NonFinite] = []
    code = compile(program, str(Path(__file__).with_name("program.py")), "exec")
    with FirstNonFinite(HERE, found.append, infinities):
        exec(code, {"torch": torch, "nan": math.nan, "inf": math.inf})
    return found


def test_the_operator_its_line_and_its_rows() -> None:
    [seen] = look(
        "x = torch.tensor([[1.0, 4.0], [-1.0, 9.0], [0.5, -4.0]])\ny = x + 1\nz = x.sqrt()\nw = z * 2\n"
    )
    assert (seen.operator, seen.phase, seen.place.line) == ("sqrt", "forward", 3)
    assert seen.place.path.endswith("program.py")
    assert seen.rows == (1, 2)
    assert seen.shape == (3, 2)
    assert seen.share == pytest.approx(2 / 6)
    assert seen.given == ("(3, 2): -4 to 9",)


def test_elements_of_a_vector_are_its_rows() -> None:
    [seen] = look("torch.tensor([1.0, -1.0, 4.0, -2.0]).log()")
    assert seen.rows == (1, 3)
    assert seen.share == 0.5


def test_what_was_nan_before_is_not_the_first() -> None:
    assert look("x = torch.tensor([nan, 1.0])\ny = x + 1") == []


def test_only_the_first_is_handed_on() -> None:
    found = look("a = torch.tensor([-1.0]).sqrt()\nb = torch.tensor([-1.0]).log()")
    assert [seen.operator for seen in found] == ["sqrt"]


def test_a_backward_operator_has_the_line_of_its_forward_one() -> None:
    [seen] = look(
        "x = torch.zeros(2, requires_grad=True)\ny = x.sqrt()\nz = (y * 0).sum()\nz.backward()\n"
    )
    assert (seen.phase, seen.place.line) == ("backward", 2)


def test_an_infinity_counts_where_it_is_asked_for() -> None:
    program = "x = torch.tensor([0.0, 1.0])\ny = 1 / x\nz = y + 1\n"
    assert look(program) == []
    [seen] = look(program, infinities=True)
    assert (seen.operator, seen.place.line, seen.rows) == ("reciprocal", 2, (0,))


def test_a_nan_that_comes_of_an_infinity_is_told_of_the_operator_that_made_that() -> None:
    program = "x = torch.tensor([0.0, 1.0])\ny = 1 / x\nw = y + 1\nz = w - w\n"
    [seen] = look(program)
    assert (seen.operator, seen.place.line) == ("reciprocal", 2)


def test_an_infinity_that_the_program_asked_for_is_none() -> None:
    """The mask of attention; a NaN made of it is told of the operator that made it."""
    masked = "x = torch.ones(2).masked_fill(torch.tensor([True, False]), -inf)\n"
    assert look(masked, infinities=True) == []
    assert look("x = torch.full((2,), inf)\n", infinities=True) == []
    [seen] = look(masked + "y = x - x\n")
    assert (seen.operator, seen.place.line) == ("sub", 2)


def test_memory_that_nobody_has_written_to_is_not_looked_at() -> None:
    assert look("x = torch.empty(2).new_empty(100_000)\nx.resize_(100_001)\n") == []


def test_at_most_three_operands_are_described() -> None:
    [seen] = look(
        "a = torch.ones(1)\nb = torch.full((1,), -1.0)\nx = torch.stack([b, a, a, a])\n"
        "y = torch.ops.aten._foreach_sqrt([b, a, a, a])"
    )
    assert seen.operator == "_foreach_sqrt"
    assert len(seen.given) == 3


def test_integers_and_empty_tensors_have_nothing_to_look_at() -> None:
    assert (
        look("x = torch.zeros(0).sum(); y = torch.ones(3).long() * 2; z = torch.zeros(0) / 0") == []
    )
