"""Messages between ranks: the bytes that this rank reads and writes in its own memory.

What goes over the wire depends on the number of ranks and the algorithm, and is no part of this.
A reduction adds once per element received.
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import elements, size_bytes

FAMILY = Family("collectives")


@FAMILY.counts(
    "_c10d_functional.all_reduce",
    "_c10d_functional.all_reduce_",
    "_c10d_functional.all_reduce_coalesced",
    "_c10d_functional.all_reduce_coalesced_",
    "_c10d_functional.reduce_scatter_tensor",
    "_c10d_functional.reduce_scatter_tensor_coalesced",
)
def reduced(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=elements(args[0]))


@FAMILY.counts(
    "_c10d_functional.all_gather_into_tensor",
    "_c10d_functional.all_gather_into_tensor_coalesced",
    "_c10d_functional.all_gather_into_tensor_out",
    "_c10d_functional.all_to_all_single",
    "_c10d_functional.broadcast",
    "_c10d_functional.broadcast_",
)
def moved(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(read=size_bytes(args[0]), written=size_bytes(out))


@FAMILY.counts("c10d.allreduce_", "c10d.allreduce_coalesced_", "c10d.reduce_")
def reduced_inside(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    size = size_bytes(args[0])
    return Count(vector=elements(args[0]), read=size, written=size)


@FAMILY.counts(
    "c10d._allgather_base_",
    "c10d.allgather_",
    "c10d.allgather_into_tensor_coalesced_",
    "c10d.allgather_coalesced_",
    "c10d.alltoall_",
    "c10d.alltoall_base_",
    "c10d.gather_",
    "c10d.scatter_",
)
def moved_inside(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """The target comes first, then what is sent."""
    return Count(read=size_bytes(args[1]), written=size_bytes(args[0]))


@FAMILY.counts(
    "c10d._reduce_scatter_base_", "c10d.reduce_scatter_", "c10d.reduce_scatter_tensor_coalesced_"
)
def reduce_scattered(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=elements(args[1]), read=size_bytes(args[1]), written=size_bytes(args[0]))


@FAMILY.counts("c10d.broadcast_", "c10d.recv_", "c10d.recv_any_source_")
def received(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(read=0, written=size_bytes(args[0]))


@FAMILY.counts("c10d.send")
def sent(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(read=size_bytes(args[0]), written=0)


FAMILY.example(
    lambda: torch.ops._c10d_functional.all_gather_into_tensor(
        torch.empty(4, device="meta"), 2, "0"
    ),
    read=16,
    written=32,
    why="4 numbers of this rank are read, 8 of both ranks are written",
)
FAMILY.example(
    lambda: torch.ops._c10d_functional.all_reduce(torch.empty(4, device="meta"), "sum", "0"),
    vector=4,
    read=16,
    written=16,
    why="one addition per number",
)
