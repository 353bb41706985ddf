"""What was expected, in our own words."""

from __future__ import annotations

import pytest

from torchstone.dryrun.record import Operand, OperatorError
from torchstone.dryrun.shapes.hazards import crosses
from torchstone.dryrun.shapes.words import explain
from torchstone.dryrun.symbolic import in_words


def error(op: str, *shapes: tuple[int, ...], message: str = "", **facts: object) -> OperatorError:
    names = ("input", "weight", "bias") if "linear" in op or "conv" in op else ("input", "other")
    operands = tuple(
        Operand(name, shape, "float32") for name, shape in zip(names, shapes, strict=False)
    )
    return OperatorError(op, message, operands=operands, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (error("F.linear", (32, 13), (10, 12)), "must be in_features = 12; it is 13"),
        (error("F.conv2d", (8, 28, 28, 3), (6, 3, 5, 5)), "must be in_channels = 3; it is 28"),
        (error("F.conv2d", (8, 3), (6, 3, 5, 5)), "must have 4 axes"),
        (error("torch.matmul", (2, 3), (4, 5)), "(3) must equal the last but one of the right (4)"),
        (error("Tensor.add", (4, 3), (4, 2)), "axis -1 counted from the end is 3 and 2"),
        (
            error("Tensor.view", (4, 3), arguments=(("argument 1", "5"), ("argument 2", "-1"))),
            "needs a multiple of 5 elements",
        ),
        (error("F.mystery", (1,), message="own words of torch"), "own words of torch"),
    ],
)
def test_each_operator_says_what_it_needs(given: OperatorError, expected: str) -> None:
    said = explain(given)
    assert expected in said.en
    assert said.zh


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((32, 1), (32,), True),
        ((32,), (32, 1), True),
        ((32, 1), (32, 1), False),
        ((32, 1), (1, 32), False),  # written out: it is meant
        ((32, 10), (10,), False),
        ((32, 1), (), False),
    ],
)
def test_broadcasting_both_ways_is_told_from_a_bias(
    left: tuple[int, ...], right: tuple[int, ...], expected: bool
) -> None:
    assert crosses(left, right) is expected


@pytest.mark.parametrize(
    ("worked", "failed", "expected"),
    [
        ([2, 4, 6, 8], [3, 5, 7], "T must be even"),
        ([4, 8, 12], [2, 3, 5, 6], "T must be a multiple of 4"),
        ([8], [2, 3], "T must be 8"),
        ([5, 6, 7], [2, 3, 4], "T must be at least 5"),
        ([2, 3], [4, 5], "T must be at most 3"),
    ],
)
def test_sizes_in_words(worked: list[int], failed: list[int], expected: str) -> None:
    assert in_words("T", worked, failed)[0] == expected
