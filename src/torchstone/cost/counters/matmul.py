"""Matrix products: 2 x rows x inner x columns; a complex multiply-add counts as four real ones.

What is added to a product (a bias, `beta * self`) is vector work: one addition per output element.
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import broadcast, elements, pick, size_bytes

FAMILY = Family("matmul")

COMPLEX = 4
"""Real multiply-adds in a complex one."""


def product_flops(left: Tensor, right: Tensor) -> int:
    """FLOPs of `left @ right` by the rules of `torch.matmul`: vectors, matrices, batches."""
    factor = 2 * COMPLEX if left.is_complex() or right.is_complex() else 2
    inner = left.shape[-1]
    rows = left.shape[-2] if left.dim() > 1 else 1
    columns = right.shape[-1] if right.dim() > 1 else 1
    batch = broadcast(left.shape[:-2], right.shape[:-2])
    return factor * batch * rows * inner * columns


@FAMILY.counts("aten.mm", "aten.bmm", "aten.mv", "aten.dot", "aten.vdot", "aten.matmul")
def product(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(flops=product_flops(args[0], args[1]))


@FAMILY.counts(
    "aten.addmm",
    "aten.addmm_",
    "aten.baddbmm",
    "aten.baddbmm_",
    "aten.addbmm",
    "aten.addbmm_",
    "aten.addmv",
    "aten.addmv_",
    "aten._addmm_activation",
)
def added_product(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(flops=product_flops(args[1], args[2]), vector=elements(out))


@FAMILY.counts("aten.addr", "aten.addr_", "aten.outer", "aten.ger")
def outer_product(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """One multiply-add per element of the result: an inner size of 1."""
    return Count(flops=2 * elements(out))


@FAMILY.counts("aten.linear", "aten.mkldnn_linear")
def linear(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    given, weight = args[0], args[1]
    bias = pick(args, kwargs, 2, "bias")
    flops = 2 * given.numel() * (weight.shape[0] if weight.dim() > 1 else 1)
    return Count(flops=flops, vector=elements(out) if isinstance(bias, Tensor) else 0)


@FAMILY.counts("mkldnn._linear_pointwise")
def linear_and_more(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """With an activation, or with a second tensor (which then comes before the weight)."""
    binary = not isinstance(args[3], str)
    bias = args[3] if binary else args[2]
    return Count(
        flops=2 * args[0].numel() * out.shape[-1],
        vector=elements(out) * (1 + isinstance(bias, Tensor)),
    )


@FAMILY.counts("aten.linear_backward")
def linear_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    given, grad, weight = args[0], args[1], args[2]
    for_input, for_weight, for_bias = pick(args, kwargs, 3, "output_mask")
    one = 2 * given.numel() * weight.shape[0]
    return Count(
        flops=one * (bool(for_input) + bool(for_weight)),
        vector=grad.numel() if for_bias else 0,
        read=size_bytes([grad, weight if for_input else (), given if for_weight else ()]),
    )


@FAMILY.counts("aten.mkldnn_linear_backward_input", "aten.mkldnn_linear_backward_weights")
def mkldnn_linear_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    grad = args[0] if isinstance(args[0], Tensor) else args[1]
    weight = args[2]
    return Count(flops=2 * grad.numel() * weight.shape[1])


@FAMILY.counts("aten.matmul_backward")
def matmul_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    mask = pick(args, kwargs, 3, "mask")
    return Count(flops=product_flops(args[1], args[2]) * sum(map(bool, mask)))


@FAMILY.counts("aten._foreach_mm")
def products(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(flops=sum(map(product_flops, args[0], args[1])))


@FAMILY.counts("aten.bilinear")
def bilinear(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Per row and output feature, a matrix of in1 x in2 is contracted with both inputs: once
    against the product of the two inputs, which itself costs one multiplication each."""
    first, second, weight = args[:3]
    rows = first.numel() // first.shape[-1]
    pairs = rows * first.shape[-1] * second.shape[-1]
    bias = pick(args, kwargs, 3, "bias")
    return Count(
        flops=2 * pairs * weight.shape[0],
        vector=pairs + (elements(out) if bias is not None else 0),
    )


@FAMILY.counts("aten._trilinear")
def trilinear(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A sum of products of three: the product of the first two, then a contraction."""
    first, second, third, *expand = args[:6]
    every = broadcast(
        *(
            _expanded(item, where)
            for item, where in zip((first, second, third), expand, strict=True)
        )
    )
    pairs = broadcast(
        *(_expanded(item, where) for item, where in zip((first, second), expand, strict=False))
    )
    return Count(flops=2 * every, vector=pairs)


def _expanded(tensor: Tensor, where: list[int]) -> list[int]:
    shape = list(tensor.shape)
    for position in sorted(where):
        shape.insert(position, 1)
    return shape


@FAMILY.counts("aten._cdist_forward", "aten._euclidean_dist", "aten.cdist")
def distances(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """The Euclidean distance of large sets is a matrix product (xᵀy) plus the two norms; any
    other power is vector work: subtract, power, add for each coordinate of each pair."""
    first, second = args[0], args[1]
    power = pick(args, kwargs, 2, "p")
    inner = first.shape[-1]
    if power in (None, 2) and (first.shape[-2] > 25 or second.shape[-2] > 25):
        norms = 2 * (first.numel() + second.numel())
        return Count(flops=2 * elements(out) * inner, vector=norms + 3 * elements(out))
    return Count(vector=3 * elements(out) * inner)


@FAMILY.counts("aten._cdist_backward")
def distances_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """For each coordinate of each pair: subtract, scale, add."""
    return Count(vector=3 * args[0].numel() * args[1].shape[-1])


@FAMILY.counts("aten._pdist_forward", "aten._pdist_backward")
def distances_within(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    points = next(item for item in args if isinstance(item, Tensor) and item.dim() == 2)
    rows, inner = points.shape
    return Count(vector=3 * (rows * (rows - 1) // 2) * inner)


FAMILY.example(
    lambda: torch.mm(torch.empty(2, 3, device="meta"), torch.empty(3, 4, device="meta")),
    flops=48,
    vector=0,
    read=4 * (6 + 12),
    written=4 * 8,
    why="2 x 2 x 3 x 4",
)
FAMILY.example(
    lambda: functional.linear(
        torch.empty(5, 8, device="meta"),
        torch.empty(16, 8, device="meta"),
        torch.empty(16, device="meta"),
    ),
    flops=1280,
    vector=80,
    read=4 * (5 * 8 + 8 * 16 + 16),
    written=4 * 5 * 16,
    why="2 x 5 x 8 x 16, and a bias for each of 5 x 16 outputs",
)
FAMILY.example(
    lambda: torch.einsum(
        "bqhd,bkhd->bhqk",
        torch.empty(2, 3, 4, 5, device="meta"),
        torch.empty(2, 7, 4, 5, device="meta"),
    ),
    flops=2 * 2 * 4 * 3 * 7 * 5,
    why="2 x batch 2 x heads 4 x 3 queries x 7 keys x 5",
)
FAMILY.example(
    lambda: torch.mv(torch.empty(6, 5, device="meta"), torch.empty(5, device="meta")),
    flops=60,
    why="2 x 6 x 5",
)
FAMILY.example(
    lambda: torch.mm(
        torch.empty(2, 3, device="meta", dtype=torch.complex64),
        torch.empty(3, 4, device="meta", dtype=torch.complex64),
    ),
    flops=192,
    why="4 real multiply-adds for each complex one: 8 x 2 x 3 x 4",
)
FAMILY.example(
    lambda: functional.bilinear(
        torch.empty(2, 3, device="meta"),
        torch.empty(2, 4, device="meta"),
        torch.empty(5, 3, 4, device="meta"),
    ),
    flops=240,
    why="2 x 2 rows x 3 x 4 x 5",
)
