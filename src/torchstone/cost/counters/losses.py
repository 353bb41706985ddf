"""Loss functions: a constant per element, forward as backward.

3 (subtract, square or absolute, add) for the distances; 8 for cross entropies of a probability
(two logarithms, two products, two sums, subtract, average); 1 per sample for the choice of a class.
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import elements, size_bytes

FAMILY = Family("losses")

DISTANCE, ENTROPY = 3, 8


@FAMILY.counts(
    "aten.mse_loss",
    "aten.mse_loss_backward",
    "aten.smooth_l1_loss",
    "aten.smooth_l1_loss_backward",
    "aten.huber_loss",
    "aten.huber_loss_backward",
    "aten.soft_margin_loss",
    "aten.soft_margin_loss_backward",
    "aten.multi_margin_loss",
    "aten.multi_margin_loss_backward",
    "aten.multilabel_margin_loss_forward",
    "aten.multilabel_margin_loss_backward",
)
def distance(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=DISTANCE * max(elements(args[0]), elements(args[1])))


@FAMILY.counts(
    "aten.binary_cross_entropy",
    "aten.binary_cross_entropy_backward",
    "aten.binary_cross_entropy_with_logits",
)
def entropy(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=ENTROPY * max(elements(args[0]), elements(args[1])))


@FAMILY.counts("aten.nll_loss_forward", "aten.nll_loss2d_forward")
def chosen(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Of each sample only the number of its class is read."""
    given, target = args[0], args[1]
    picked = target.numel() * given.element_size()
    return Count(vector=target.numel(), read=picked + size_bytes([target, args[2]]))


@FAMILY.counts("aten.nll_loss_backward", "aten.nll_loss2d_backward")
def chosen_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A tensor of zeros with one number per sample; the input gives only its shape."""
    grad, _given, target, weight = args[:4]
    return Count(vector=target.numel(), read=size_bytes([grad, target, weight]))


@FAMILY.counts("aten._ctc_loss", "aten._cudnn_ctc_loss", "aten.miopen_ctc_loss")
def alignment(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Per step and position of the extended target: three exponentials, a sum, a logarithm."""
    return Count(vector=8 * elements(out[1]))


@FAMILY.counts("aten._ctc_loss_backward")
def alignment_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=8 * elements(args[6]) + 3 * elements(out))


FAMILY.example(
    lambda: torch.nn.functional.mse_loss(
        torch.empty(4, 8, device="meta"), torch.empty(4, 8, device="meta")
    ),
    vector=96,
    read=256,
    written=4,
    why="32 elements x (subtract, square, add)",
)
FAMILY.example(
    lambda: torch.nn.functional.nll_loss(
        torch.empty(4, 1000, device="meta"), torch.empty(4, dtype=torch.int64, device="meta")
    ),
    vector=4,
    read=4 * 4 + 4 * 8,
    written=4 + 4,
    why="4 numbers picked by 4 classes; the loss and the total weight are written",
)
