"""Layouts of memory: turned, spaced, cut out of something larger, off a boundary, repeated, shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torchstone.kernels.messages.trees import Tree

STRIDED, UNALIGNED, EXPANDED, SHARED = "strided", "unaligned", "expanded", "shared"
LAYOUTS = (STRIDED, UNALIGNED, EXPANDED, SHARED)
_OFFSETS = (1, 2, 3, 5, 7)
"""Elements between a boundary and the first one of a view that starts off it."""


def laid_out(tree: Tree, kind: str, seed: int) -> Tree:
    """The tree with every array in memory of another kind, another way for every seed."""

    def one(leaf: Tree) -> Tree:
        if kind == STRIDED:
            return replace(leaf, stride=layout(leaf.shape, seed))
        if kind == UNALIGNED:
            return replace(leaf, offset=_OFFSETS[seed % len(_OFFSETS)])
        if kind == EXPANDED and "float" in leaf.dtype:
            dim = expanded_side(leaf.shape, seed)
            return replace(leaf, stride=[0 if i == dim else n for i, n in enumerate(leaf.stride)])
        return leaf

    made = _each(tree, one)
    return _with_shared(made) if kind == SHARED else made


def _each(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    if tree.is_array:
        return change(tree) if tree.kind != "scalar" else tree
    return replace(tree, items=[_each(item, change) for item in tree.items])


def _with_shared(tree: Tree) -> Tree:
    """Arrays of one shape and format are one array."""
    first: dict[str, int] = {}

    def one(leaf: Tree) -> Tree:
        number = first.setdefault(repr((leaf.shape, leaf.dtype)), leaf.buffer)
        return replace(leaf, buffer=number, shared=True)

    return _each(tree, one)


def expanded_side(shape: Sequence[int], seed: int) -> int:
    """Along which side an array repeats itself: the first, or the one before the last."""
    return 0 if seed % 2 == 0 or len(shape) < 3 else len(shape) - 2


def layout(shape: list[int], seed: int) -> list[int]:
    """Strides in elements: 0 turned, 1 every second element, 2 rows with a margin, …"""
    if not shape:
        return []
    order = list(range(len(shape)))
    if seed % 3 == 0 and len(shape) > 1:
        order[-1], order[-2] = order[-2], order[-1]
    step = 2 if seed % 3 == 1 or len(shape) == 1 else 1
    margin = 3 if seed % 3 == 2 else 0
    stride = [0] * len(shape)
    for dim in reversed(order):
        stride[dim] = step
        step = step * max(shape[dim], 1) + (margin if dim == order[-1] else 0)
    return stride
