"""Which layers of a model are the same: stacks of children with one structure."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
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


def has_hooks(module: nn.Module) -> bool:
    """Is something else called when the module is?"""
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)


def signature(module: nn.Module) -> Any:
    """Equal for layers that compute the same; None when that cannot be told."""
    kind = type(module)
    if any("__init_subclass__" in vars(base) for base in kind.__mro__[:-1]):
        return None  # a copied layer gets a class of its own, and such a base would hear of it
    if any(name in vars(module) for name in _NUMBERS) and numbers_decide(kind):  # type: ignore[arg-type]
        return None
    if has_hooks(module):
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


@functools.cache
def numbers_decide(kind: Any) -> bool:
    """Does the code of a class compute or choose by the number of its layer? Handing it on (to a
    cache) is no matter; where the source cannot be read, it may."""
    if kind.__module__.startswith("torch.nn"):
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):
        return True
    return any(
        _decides(method)
        for method in ast.walk(tree)
        if isinstance(method, ast.FunctionDef) and method.name != "__init__"
    )


_CACHES = re.compile(r"past|cache|is_updated")
"""A layer's own place in a cache is all that such an index means."""


def _decides(method: ast.FunctionDef) -> bool:
    """Is a number part of a comparison, a condition or an index, or given another name? To compute
    with it (a scale that grows with the layer) changes values and no shapes."""
    for node in ast.walk(method):
        places: list[ast.AST] = []
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            places.append(node.test)
        elif isinstance(node, (ast.Compare, ast.BoolOp)):
            places.append(node)
        elif isinstance(node, ast.Subscript) and not _CACHES.search(ast.unparse(node.value)):
            places.append(node.slice)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            if node.value.attr in _NUMBERS:
                return True
        for inner in (inner for place in places for inner in ast.walk(place)):
            if isinstance(inner, ast.Attribute) and inner.attr in _NUMBERS:
                return True
    return False
