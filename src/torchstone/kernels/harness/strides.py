"""Layouts that are not contiguous: turned, spaced and cut out of something larger."""

from __future__ import annotations

from typing import Any


def strided(tree: dict[str, Any], seed: int) -> dict[str, Any]:
    """The tree with strides that are not contiguous, another kind for every seed."""
    if "array" in tree:
        return (
            {**tree, "stride": layout(tree["shape"], seed)} if tree["array"] != "scalar" else tree
        )
    for kind in ("list", "tuple"):
        if kind in tree:
            return {kind: [strided(item, seed) for item in tree[kind]]}
    if "dict" in tree:
        return {"dict": [[key, strided(item, seed)] for key, item in tree["dict"]]}
    return tree


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
