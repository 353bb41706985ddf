"""Which layers of a model are the same: stacks of children with one structure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchstone.runtime.modules import Part, parts_of

SHORTEST = 5
"""The first two and the last of a stack always run, so fewer layers than this gain nothing."""
_NUMBERS = frozenset(
    "layer_idx layer_id layer_index layer_number layer_num idx index block_idx block_id "
    "depth_index layer i n name _name prefix".split()
)
_PLAIN = (int, float, str, bool, type(None), torch.dtype, torch.Size)


@dataclass(frozen=True)
class Stack:
    """Children of one container that have the same structure, in order of their place."""

    paths: tuple[str, ...]
    layers: tuple[nn.Module, ...]


def stacks(parts: list[Part]) -> list[Stack]:
    """The outermost stacks of a model; a layer inside of one is not looked at again."""
    found: list[Stack] = []
    inside: set[int] = set()
    shared = _shared(parts)
    for path, module in parts:
        if id(module) in inside or not isinstance(module, (nn.ModuleList, nn.Sequential)):
            continue
        for stack in _runs(path, list(module.named_children())):
            within = [part for layer in stack.layers for part in parts_of(layer)]
            if not shared.isdisjoint(
                id(item) for part in within for item in part.module._parameters.values()
            ):
                continue
            found.append(stack)
            inside.update(id(part.module) for part in within)
    return found


def _runs(path: str, children: list[tuple[str, nn.Module]]) -> Iterator[Stack]:
    start = 0
    signatures = [signature(child) for _, child in children]
    for end in range(1, len(children) + 1):
        if end < len(children) and signatures[end] == signatures[start]:
            continue
        if end - start >= SHORTEST and signatures[start] is not None:
            names = tuple(f"{path}.{name}" if path else name for name, _ in children[start:end])
            yield Stack(names, tuple(child for _, child in children[start:end]))
        start = end


def _shared(parts: list[Part]) -> set[int]:
    """Parameters that more than one module holds: such layers are not alike."""
    seen: set[int] = set()
    twice: set[int] = set()
    for _, module in parts:
        for parameter in module._parameters.values():
            if parameter is not None:
                (twice if id(parameter) in seen else seen).add(id(parameter))
    return twice


def signature(module: nn.Module) -> Any:
    """Equal for layers that compute the same; None when that cannot be told."""
    if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks:
        return None
    plain = tuple(
        (key, value if isinstance(value, _PLAIN) else type(value))
        for key, value in sorted(vars(module).items())
        if key not in _NUMBERS and not key.startswith("_")
    )
    tensors = tuple(
        (name, tuple(t.shape), t.dtype, t.requires_grad)
        for home in (module._parameters, module._buffers)
        for name, t in home.items()
        if t is not None
    )
    children = []
    for name, child in module._modules.items():
        inner = None if child is None else signature(child)
        if child is not None and inner is None:
            return None
        children.append((name, inner))
    return (type(module), plain, tensors, tuple(children))
