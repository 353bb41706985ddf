"""Softmax: 5 per element forward (maximum, subtract, exponential, sum, divide), 4 backward."""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch

from torchstone.cost.counters import Count, Family

FAMILY = Family("softmax")

FORWARD, BACKWARD = 5, 4


@FAMILY.counts(
    "aten._softmax",
    "aten._log_softmax",
    "aten._safe_softmax",
    "aten._masked_softmax",
    "aten.softmax",
    "aten.log_softmax",
)
def forward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=FORWARD * args[0].numel())


@FAMILY.counts(
    "aten._softmax_backward_data",
    "aten._log_softmax_backward_data",
    "aten._masked_softmax_backward",
)
def backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=BACKWARD * args[0].numel())


FAMILY.example(
    lambda: torch.softmax(torch.empty(4, 8, device="meta"), -1),
    vector=160,
    read=128,
    written=128,
    why="32 elements x 5",
)
FAMILY.example(
    lambda: torch.ops.aten._log_softmax_backward_data(
        torch.empty(4, 8, device="meta"), torch.empty(4, 8, device="meta"), -1, torch.float32
    ),
    vector=128,
    read=256,
    written=128,
    why="32 elements x 4; gradient and output are read",
)
