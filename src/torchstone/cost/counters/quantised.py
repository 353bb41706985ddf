"""Products in narrow number formats: the same multiply-adds, fewer bytes.

Weights may be packed in a layout of their own, so the number of outputs is taken from the result.
Scales are vector work: one multiplication per output element. Quantising is 3 per element (scale,
round, clamp), going back is 2 (subtract the zero point, scale).
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import elements, input_bytes, size_bytes

FAMILY = Family("quantised")

QUANTISE, DEQUANTISE = 3, 2


@FAMILY.counts("aten._int_mm")
def integer_product(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(flops=2 * args[0].numel() * out.shape[-1])


@FAMILY.counts(
    "aten._scaled_mm",
    "aten._scaled_mm_v2",
    "aten._weight_int8pack_mm",
    "aten._weight_int4pack_mm",
    "aten._weight_int4pack_mm_for_cpu",
    "aten._weight_int4pack_mm_with_scales_and_zeros",
    "aten._dyn_quant_matmul_4bit",
    "aten._mixed_dtypes_linear",
    "aten._wrapped_quantized_linear_prepacked",
    "quantized.int4mm_packed_weight_cpu",
    "onednn.qlinear_pointwise",
)
def scaled_product(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(flops=2 * args[0].numel() * out.shape[-1], vector=elements(out))


@FAMILY.counts("aten._sparse_semi_structured_linear")
def half_sparse_linear(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Two of four weights are zero and skipped: half of the dense product is done."""
    return Count(flops=args[0].numel() * out.shape[-1])


@FAMILY.counts("aten._sparse_semi_structured_mm")
def half_sparse_product(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """The first matrix is stored without its zeros: (rows, inner / 2)."""
    return Count(flops=2 * args[0].numel() * args[2].shape[-1])


@FAMILY.counts("aten._sparse_semi_structured_addmm")
def half_sparse_added(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(flops=2 * args[1].numel() * args[3].shape[-1], vector=elements(out))


@FAMILY.counts("aten._cslt_sparse_mm")
def compressed_product(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Half of the dense product of the second matrix with the rows of the first."""
    rows = elements(out) // max(args[1].shape[-1], 1)
    return Count(flops=args[1].numel() * rows)


@FAMILY.counts(
    "quantized.linear",
    "quantized.linear_relu",
    "quantized.linear_leaky_relu",
    "quantized.linear_tanh",
    "quantized.linear_dynamic",
    "quantized.linear_relu_dynamic",
    "quantized.linear_dynamic_fp16",
    "quantized.linear_relu_dynamic_fp16",
    "onednn.linear_dynamic_fp16",
    "onednn.linear_relu_dynamic_fp16",
)
def packed_linear(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    weight, bias = _unpacked(args[1])
    return Count(
        flops=2 * args[0].numel() * out.shape[-1],
        vector=elements(out),
        read=input_bytes(args, kwargs) + size_bytes([weight, bias]),
    )


@FAMILY.counts(
    "quantized.conv1d",
    "quantized.conv1d_relu",
    "quantized.conv1d_dynamic",
    "quantized.conv2d",
    "quantized.conv2d_relu",
    "quantized.conv2d_add",
    "quantized.conv2d_add_relu",
    "quantized.conv2d_dynamic",
    "quantized.conv3d",
    "quantized.conv3d_relu",
    "quantized.conv3d_dynamic",
)
def packed_convolution(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    packed = next(item for item in args[1:] if not isinstance(item, Tensor))
    weight, bias = _unpacked(packed)
    return Count(
        flops=2 * elements(out) * weight.shape[1:].numel(),
        vector=elements(out),
        read=input_bytes(args, kwargs) + size_bytes([weight, bias]),
    )


def _unpacked(packed: Any) -> tuple[Tensor, Any]:
    weight, bias = packed.unpack()[:2]
    return weight, bias


@FAMILY.counts(
    "onednn.qconv_pointwise",
    "onednn.qconv1d_pointwise",
    "onednn.qconv2d_pointwise",
    "onednn.qconv3d_pointwise",
)
def reordered_convolution(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(flops=2 * elements(out) * args[3].shape[1:].numel(), vector=elements(out))


@FAMILY.counts(
    "aten.quantize_per_tensor", "aten.quantize_per_tensor_dynamic", "aten.quantize_per_channel"
)
def quantise(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=QUANTISE * elements(args[0]))


@FAMILY.counts(
    "quantized.linear_prepack",
    "quantized.linear_prepack_fp16",
    "quantized.conv1d_prepack",
    "quantized.conv2d_prepack",
    "quantized.conv3d_prepack",
    "onednn.qlinear_prepack",
    "onednn.qconv_prepack",
)
def packing(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A copy into the layout of the kernel."""
    size = size_bytes(args)
    return Count(read=size, written=size)


@FAMILY.counts("aten.dequantize", "aten.int_repr")
def dequantise(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=DEQUANTISE * elements(args[0]))


@FAMILY.counts(
    "aten.fake_quantize_per_tensor_affine_cachemask",
    "aten.fake_quantize_per_channel_affine_cachemask",
    "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    "aten._fake_quantize_learnable_per_tensor_affine",
    "aten._fake_quantize_learnable_per_channel_affine",
    "aten._fake_quantize_learnable_per_tensor_affine_backward",
    "aten._fake_quantize_learnable_per_channel_affine_backward",
    "aten._fused_moving_avg_obs_fq_helper",
    "aten._fused_moving_avg_obs_fq_helper_functional",
)
def fake_quantise(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """There and back."""
    return Count(vector=(QUANTISE + DEQUANTISE) * args[0].numel())


def _integers(*shape: int) -> Tensor:
    return torch.empty(*shape, dtype=torch.int8, device="meta")


FAMILY.example(
    lambda: torch._int_mm(_integers(32, 16), _integers(16, 8)),
    flops=8192,
    vector=0,
    read=32 * 16 + 16 * 8,
    written=4 * 32 * 8,
    why="2 x 32 x 16 x 8; one byte in, four bytes out",
)
FAMILY.example(
    lambda: torch._weight_int8pack_mm(
        torch.empty(4, 16, dtype=torch.bfloat16, device="meta"),
        _integers(8, 16),
        torch.empty(8, dtype=torch.bfloat16, device="meta"),
    ),
    flops=1024,
    vector=32,
    read=2 * 4 * 16 + 8 * 16 + 2 * 8,
    written=2 * 4 * 8,
    why="2 x 4 x 16 x 8; weights of one byte",
)
FAMILY.example(
    lambda: torch.ops.quantized.linear_dynamic(
        torch.zeros(3, 16),
        torch.ops.quantized.linear_prepack(
            torch.quantize_per_tensor(torch.zeros(8, 16), 0.1, 0, torch.qint8), None
        ),
    ),
    flops=2 * 3 * 16 * 8,
    why="2 x 3 x 16 x 8 with a packed weight on the CPU",
)
