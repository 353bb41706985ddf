"""Convolutions: 2 x output elements x (input channels / groups) x size of the kernel.

A transposed convolution is counted from its input, each element of which meets the whole kernel.
The gradient of the input and the gradient of the weight cost as much as the forward each; the
bias adds (or, backward, sums) one per output element.
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import elements, pick, size_bytes

FAMILY = Family("convolution")


def convolution_flops(given: Tensor, weight: Tensor, out: Tensor, transposed: bool = False) -> int:
    """FLOPs of one convolution. A weight is (out, in / groups, kernel…); transposed it is
    (in, out / groups, kernel…): in both, one slice is what one element meets."""
    factor = 8 if weight.is_complex() else 2
    meets = weight.shape[1:].numel()
    return factor * (given if transposed else out).numel() * meets


def _count(
    given: Tensor, weight: Tensor, bias: Any, out: Tensor, transposed: bool = False
) -> Count:
    return Count(
        flops=convolution_flops(given, weight, out, transposed),
        vector=out.numel() if isinstance(bias, Tensor) else 0,
    )


@FAMILY.counts(
    "aten.convolution",
    "aten._convolution",
    "aten.convolution_overrideable",
)
def convolution(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    transposed = bool(pick(args, kwargs, 6, "transposed"))
    return _count(args[0], args[1], pick(args, kwargs, 2, "bias"), out, transposed)


@FAMILY.counts(
    "aten.conv1d",
    "aten.conv2d",
    "aten.conv3d",
    "aten._convolution_mode",
    "aten.mkldnn_convolution",
    "aten.cudnn_convolution",
    "aten.miopen_convolution",
    "aten.miopen_depthwise_convolution",
    "aten._mps_convolution",
    "aten._nnpack_spatial_convolution",
    "aten.cudnn_convolution_relu",
    "aten.miopen_convolution_relu",
)
def forward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    bias = next((item for item in args[2:3] if isinstance(item, Tensor)), kwargs.get("bias"))
    return _count(args[0], args[1], bias, out)


@FAMILY.counts("mkldnn._convolution_pointwise", "mkldnn._convolution_pointwise_")
def with_activation(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """With an activation, or with a second tensor (which then stands beside the input)."""
    given, weight, bias = args[:3] if isinstance(args[3], (list, tuple)) else _binary(args, out)
    count = _count(given, weight, bias, out)
    return count._replace(vector=count.vector + out.numel())


def _binary(args: tuple[Any, ...], out: Tensor) -> tuple[Tensor, Tensor, Any]:
    given = args[1] if args[0].shape == out.shape and args[0] is out else args[0]
    return given, args[2], args[3]


@FAMILY.counts(
    "aten._conv_depthwise2d",
    "aten.conv_depthwise3d",
    "aten.slow_conv3d_forward",
    "aten._slow_conv2d_forward",
    "aten.slow_conv_dilated2d",
    "aten.slow_conv_dilated3d",
)
def direct(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """These take the kernel's size before the bias."""
    return _count(args[0], args[1], pick(args, kwargs, 3, "bias"), out)


@FAMILY.counts("aten.cudnn_convolution_add_relu", "aten.miopen_convolution_add_relu")
def with_addition(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Bias, addition and ReLU: three per output element."""
    return Count(flops=convolution_flops(args[0], args[1], out), vector=3 * out.numel())


@FAMILY.counts(
    "aten.conv_transpose1d",
    "aten.conv_transpose2d",
    "aten.conv_transpose3d",
    "aten.cudnn_convolution_transpose",
    "aten.miopen_convolution_transpose",
    "aten._mps_convolution_transpose",
    "mkldnn._convolution_transpose_pointwise",
)
def transposed(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    bias = next((item for item in args[2:3] if isinstance(item, Tensor)), kwargs.get("bias"))
    return _count(args[0], args[1], bias, out, transposed=True)


@FAMILY.counts("aten.slow_conv_transpose2d", "aten.slow_conv_transpose3d")
def direct_transposed(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _count(args[0], args[1], pick(args, kwargs, 3, "bias"), out, transposed=True)


@FAMILY.counts("aten.conv_tbc")
def time_first(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Weight (kernel, in, out): an output element meets kernel x in."""
    meets = args[1].shape[0] * args[1].shape[1]
    return Count(flops=2 * out.numel() * meets, vector=out.numel())


@FAMILY.counts("aten.convolution_backward")
def backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    is_transposed = bool(pick(args, kwargs, 7, "transposed"))
    return _backward(args, is_transposed, pick(args, kwargs, 10, "output_mask"))


@FAMILY.counts("aten.convolution_backward_overrideable")
def backward_overrideable(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    is_transposed = bool(pick(args, kwargs, 6, "transposed"))
    return _backward(args, is_transposed, pick(args, kwargs, 9, "output_mask"))


@FAMILY.counts("aten._slow_conv2d_backward")
def direct_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    mask = args[-1] if isinstance(args[-1], (list, tuple)) else kwargs.get("output_mask")
    wanted = mask if mask and isinstance(mask[0], bool) else (True, True, True)
    return _backward(args, False, wanted)


@FAMILY.counts("aten.mps_convolution_backward")
def other_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    given, grad, weight = args[:3]
    return _backward((grad, given, weight), False, pick(args, kwargs, 7, "output_mask"))


def _backward(args: tuple[Any, ...], is_transposed: bool, mask: Any) -> Count:
    grad, given, weight = args[:3]
    for_input, for_weight, for_bias = mask
    one = convolution_flops(given, weight, grad, is_transposed)
    return Count(
        flops=one * (bool(for_input) + bool(for_weight)),
        vector=grad.numel() if for_bias else 0,
        read=size_bytes([grad, weight if for_input else (), given if for_weight else ()]),
    )


@FAMILY.counts("aten.im2col", "aten.col2im")
def unfolded(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Copies; folding back adds where windows overlap, once per element given."""
    return Count(vector=max(0, args[0].numel() - elements(out)))


def _meta(*shape: int) -> Tensor:
    return torch.empty(*shape, device="meta", requires_grad=True)


def _depthwise_step() -> None:
    weight = _meta(8, 1, 3, 3)
    out = functional.conv2d(_meta(2, 8, 5, 5), weight, padding=1, groups=8)
    torch.ops.aten.convolution_backward(
        out, _meta(2, 8, 5, 5), weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 8,
        [True, True, False],
    )  # fmt: skip


FAMILY.example(
    lambda: functional.conv2d(_meta(2, 3, 8, 8), _meta(16, 3, 3, 3), _meta(16), padding=1),
    flops=2 * (2 * 16 * 8 * 8) * 3 * 9,
    vector=2 * 16 * 8 * 8,
    why="2 x 2048 outputs x 3 channels x 9; one bias per output",
)
FAMILY.example(
    _depthwise_step,
    flops=3 * 2 * (2 * 8 * 5 * 5) * 9,
    vector=0,
    why="depthwise: each output meets 9 weights; forward, input gradient and weight gradient",
)
FAMILY.example(
    lambda: functional.conv_transpose2d(_meta(1, 4, 5, 5), _meta(4, 6, 2, 2), stride=2),
    flops=2 * (4 * 5 * 5) * 6 * 4,
    why="each of 100 inputs meets 6 channels x 2 x 2",
)
FAMILY.example(
    lambda: functional.conv1d(_meta(1, 8, 10), _meta(8, 2, 3), groups=4),
    flops=2 * (8 * 8) * 2 * 3,
    why="8 channels x 8 positions, each from 2 channels x 3",
)
