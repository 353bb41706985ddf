"""Sizes of what goes into and comes out of an operator, in elements and in bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from torch import Tensor

OUTPUT_NAMES = frozenset({"out", "out0", "out1", "out2", "out3", "out4", "out5", "out6"})
"""Keywords under which an operator is handed the tensor to write into."""


def pick(args: tuple[Any, ...], kwargs: dict[str, Any], index: int, name: str, /) -> Any:
    """An argument by position or by keyword; None when it was left out."""
    return args[index] if len(args) > index else kwargs.get(name)


def tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor in a tensor, a list or a dictionary, however nested."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)


def elements(value: Any) -> int:
    """Number of elements of all tensors in it."""
    return sum(tensor.numel() for tensor in tensors(value))


def size_bytes(value: Any) -> int:
    """Bytes of all tensors in it. Dimensions that were expanded (stride 0) are in memory once."""
    return sum(_size_bytes(tensor) for tensor in tensors(value))


def input_bytes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Bytes read by the plain rule: every tensor that goes in, once."""
    given = {name: value for name, value in kwargs.items() if name not in OUTPUT_NAMES}
    return size_bytes(args) + size_bytes(given)


def window(kernel: Any, dimensions: int) -> int:
    """Number of positions under a kernel that is given as one number or one per dimension."""
    sizes = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel]
    return prod(sizes * dimensions if len(sizes) == 1 else sizes)


def _size_bytes(tensor: Tensor) -> int:
    try:
        strides = tensor.stride()
    except RuntimeError:
        # Sparse and opaque layouts have no strides; their dense size is an upper bound.
        return tensor.numel() * tensor.element_size()
    stored = 1
    for size, stride in zip(tensor.shape, strides, strict=True):
        if stride or not size:
            stored *= size
    return int(stored) * tensor.element_size()


def broadcast(*shapes: Sequence[int]) -> int:
    """Number of elements of the shape that these shapes broadcast to."""
    longest = max(map(len, shapes), default=0)
    padded = [(1,) * (longest - len(shape)) + tuple(shape) for shape in shapes]
    return prod(
        next((size for size in column if size != 1), 1) for column in zip(*padded, strict=True)
    )
