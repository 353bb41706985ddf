"""Embeddings: only the rows that are looked up are read, never the whole table.

A bag adds up its rows: one addition per element looked up (and a multiplication when the rows are
weighted). The dense gradient zeroes a table and adds every row of the gradient into it.
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import pick, size_bytes

FAMILY = Family("embedding")


@FAMILY.counts("aten.embedding")
def lookup(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(read=size_bytes(out) + size_bytes(args[1]))


@FAMILY.counts("aten.embedding_dense_backward")
def lookup_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    grad, indices = args[0], args[1]
    rows = size_bytes(grad)
    return Count(
        vector=grad.numel(),
        read=rows + size_bytes(indices) + rows,
        written=size_bytes(out) + rows,
    )


@FAMILY.counts("aten.embedding_renorm_", "aten.embedding_renorm")
def renorm(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Norm (2) and scale (1) of each row looked up."""
    rows = args[1].numel() * args[0].shape[-1]
    size = rows * args[0].element_size()
    return Count(vector=3 * rows, read=2 * size + size_bytes(args[1]), written=size)


@FAMILY.counts("aten._embedding_bag", "aten._embedding_bag_forward_only", "aten.embedding_bag")
def bag(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    weight, indices, offsets = args[:3]
    weights = pick(args, kwargs, 6, "per_sample_weights")
    looked_up = indices.numel() * weight.shape[-1]
    read = looked_up * weight.element_size() + size_bytes([indices, offsets, weights])
    return Count(vector=looked_up * (2 if isinstance(weights, Tensor) else 1), read=read)


@FAMILY.counts(
    "aten._embedding_bag_backward",
    "aten._embedding_bag_dense_backward",
    "aten._embedding_bag_per_sample_weights_backward",
)
def bag_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A row of the gradient is added once for every index of its bag."""
    grad = args[0]
    indices = next(item for item in args[1:] if isinstance(item, Tensor) and item.dim() == 1)
    return Count(vector=indices.numel() * grad.shape[-1])


FAMILY.example(
    lambda: functional.embedding(
        torch.empty(2, 5, dtype=torch.int64, device="meta"), torch.empty(50_000, 64, device="meta")
    ),
    flops=0,
    vector=0,
    read=10 * 64 * 4 + 10 * 8,
    written=10 * 64 * 4,
    why="10 rows of 64 numbers and 10 indices are read, not the 12.8 MB table",
)
FAMILY.example(
    lambda: torch.ops.aten.embedding_dense_backward(
        torch.empty(2, 5, 64, device="meta"),
        torch.empty(2, 5, dtype=torch.int64, device="meta"),
        100,
        -1,
        False,
    ),
    vector=640,
    read=2 * 640 * 4 + 10 * 8,
    written=100 * 64 * 4 + 640 * 4,
    why="100 rows are zeroed; 10 rows are read, added to and written",
)
FAMILY.example(
    lambda: functional.embedding_bag(
        torch.empty(12, dtype=torch.int64, device="meta"),
        torch.empty(100, 8, device="meta"),
        torch.empty(3, dtype=torch.int64, device="meta"),
        mode="sum",
    ),
    vector=96,
    read=12 * 8 * 4 + 12 * 8 + 3 * 8,
    why="12 rows of 8 are added up; rows, 12 indices and 3 offsets are read",
)
