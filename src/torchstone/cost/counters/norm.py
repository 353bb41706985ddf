"""Normalisations: vector work with a constant per element.

| per element | forward | backward |
|---|---|---|
| layer, batch, group norm | 5: mean 1, deviation 1, square and add 2, scale 1 | 10: the normalised value again 2, two sums 4, combination 4 |
| RMS norm | 3: square and add 2, scale 1 | 6: the normalised value again 1, one sum 2, combination 3 |
| batch norm with stored statistics | 2: subtract, scale | 1: scale |
| weight, bias | 1 each | 2 for the weight's gradient, 1 for the bias's |
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torchstone.cost.counters import Count, Counter, Family
from torchstone.cost.counters._sizes import pick

FAMILY = Family("norm")

CENTRED, CENTRED_BACKWARD = 5, 10
RMS, RMS_BACKWARD = 3, 6
STORED, STORED_BACKWARD = 2, 1
WEIGHT_BACKWARD, BIAS_BACKWARD = 2, 1
STATISTICS = 4
"""Mean, deviation, square and add."""


def _present(*values: Any) -> int:
    return sum(isinstance(value, Tensor) for value in values)


@FAMILY.counts("aten.native_layer_norm", "aten.layer_norm", "aten.group_norm")
def centred(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    affine = _present(pick(args, kwargs, 2, "weight"), pick(args, kwargs, 3, "bias"))
    return Count(vector=args[0].numel() * (CENTRED + affine))


@FAMILY.counts("aten.native_group_norm")
def group(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    affine = _present(pick(args, kwargs, 1, "weight"), pick(args, kwargs, 2, "bias"))
    return Count(vector=args[0].numel() * (CENTRED + affine))


@FAMILY.counts("aten._fused_rms_norm", "aten.rms_norm")
def root_mean_square(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=args[0].numel() * (RMS + _present(pick(args, kwargs, 2, "weight"))))


@FAMILY.counts("aten._fused_rms_norm_backward")
def root_mean_square_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    for_input, for_weight = pick(args, kwargs, 5, "output_mask")
    return Count(vector=args[1].numel() * _wanted(RMS_BACKWARD, for_input, for_weight, False))


@FAMILY.counts("aten.native_layer_norm_backward")
def layer_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    mask = pick(args, kwargs, 7, "output_mask")
    return Count(vector=args[1].numel() * _wanted(CENTRED_BACKWARD, *mask))


@FAMILY.counts("aten.native_group_norm_backward")
def group_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    mask = pick(args, kwargs, 9, "output_mask")
    return Count(vector=args[1].numel() * _wanted(CENTRED_BACKWARD, *mask))


def _wanted(per_element: int, for_input: bool, for_weight: bool, for_bias: bool) -> int:
    return (
        per_element * bool(for_input)
        + WEIGHT_BACKWARD * bool(for_weight)
        + BIAS_BACKWARD * bool(for_bias)
    )


def _batch(training: bool | None) -> Counter:
    """A counter for batch norms; None means that a flag among the arguments decides."""

    def count(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
        affine = _present(pick(args, kwargs, 1, "weight"), pick(args, kwargs, 2, "bias"))
        flags = [item for item in args[3:] if isinstance(item, bool)]
        trains = (flags[0] if flags else True) if training is None else training
        return Count(vector=args[0].numel() * ((CENTRED if trains else STORED) + affine))

    return count


FAMILY.counts(
    "aten.native_batch_norm",
    "aten._native_batch_norm_legit",
    "aten._native_batch_norm_legit_functional",
    "aten.cudnn_batch_norm",
    "aten.miopen_batch_norm",
    "aten.batch_norm",
    "aten.instance_norm",
)(_batch(None))
FAMILY.counts("aten._batch_norm_with_update", "aten._batch_norm_with_update_functional")(
    _batch(True)
)
FAMILY.counts("aten._batch_norm_no_update", "aten._native_batch_norm_legit_no_training")(
    _batch(False)
)


@FAMILY.counts("aten.native_batch_norm_backward", "aten.batch_norm_backward")
def batch_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    trains = pick(args, kwargs, 7, "train")
    mask = pick(args, kwargs, 9, "output_mask")
    per_element = CENTRED_BACKWARD if trains else STORED_BACKWARD
    return Count(vector=args[1].numel() * _wanted(per_element, *mask))


@FAMILY.counts("aten.cudnn_batch_norm_backward", "aten.miopen_batch_norm_backward")
def vendor_batch_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=args[1].numel() * _wanted(CENTRED_BACKWARD, True, True, True))


@FAMILY.counts("aten.batch_norm_stats", "aten.batch_norm_update_stats")
def statistics(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=STATISTICS * args[0].numel())


@FAMILY.counts("aten.batch_norm_gather_stats", "aten.batch_norm_gather_stats_with_counts")
def gathered_statistics(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """The statistics of all ranks become one; the input itself is not looked at."""
    return Count(vector=STATISTICS * args[1].numel())


@FAMILY.counts("aten.batch_norm_elemt")
def batch_apply(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=args[0].numel() * (STORED + _present(args[1], args[2])))


@FAMILY.counts("aten.batch_norm_backward_reduce", "aten.batch_norm_backward_elemt")
def batch_backward_part(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """The backward in two halves around the exchange between ranks."""
    return Count(vector=args[0].numel() * CENTRED_BACKWARD // 2)


@FAMILY.counts("aten._weight_norm_interface")
def weight_norm(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Square and add, scale."""
    return Count(vector=3 * args[0].numel())


@FAMILY.counts("aten._weight_norm_interface_backward")
def weight_norm_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=6 * args[0].numel())


@FAMILY.counts("aten.renorm", "aten.renorm_")
def renorm(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=3 * args[0].numel())


FAMILY.example(
    lambda: functional.layer_norm(
        torch.empty(4, 16, device="meta"),
        [16],
        torch.empty(16, device="meta"),
        torch.empty(16, device="meta"),
    ),
    vector=64 * 7,
    read=4 * (64 + 32),
    written=4 * (64 + 4 + 4),
    why="64 elements x (5 + weight + bias); writes the output and a mean and a scale per row",
)
FAMILY.example(
    lambda: functional.batch_norm(
        torch.empty(2, 3, 4, 4, device="meta"),
        torch.empty(3, device="meta"),
        torch.empty(3, device="meta"),
        torch.empty(3, device="meta"),
        torch.empty(3, device="meta"),
    ),
    vector=96 * 4,
    why="96 elements x (subtract, scale, weight, bias)",
)
FAMILY.example(
    lambda: torch.ops.aten.native_layer_norm_backward(
        torch.empty(4, 16, device="meta"),
        torch.empty(4, 16, device="meta"),
        [16],
        torch.empty(4, 1, device="meta"),
        torch.empty(4, 1, device="meta"),
        torch.empty(16, device="meta"),
        torch.empty(16, device="meta"),
        [True, True, True],
    ),
    vector=64 * 13,
    why="64 elements x (10 for the input, 2 for the weight, 1 for the bias)",
)
