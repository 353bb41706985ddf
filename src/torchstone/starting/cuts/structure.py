"""What a function or a dataset gives, read from its code: the places and names of its values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.starting.cuts.forms import Leaf

_MOST = 24
"""Values; a longer list is data, not a structure."""
_LOADER = re.compile(r"(DataLoader|_loader)$")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def leaves_of(function: ast.FunctionDef) -> tuple[Leaf, ...]:
    """Of the fullest value that it returns or yields; one open value where that cannot be read."""
    found = [_leaves(value, function, (), 0) for value in _given(function)]
    best = max(found, key=len, default=())
    return best[:_MOST] or (Leaf((), function.name),)


def gives_something(function: ast.FunctionDef) -> bool:
    """Whether it returns or yields a value."""
    return any(not isinstance(value, ast.Constant) for value in _given(function))


def _given(function: ast.FunctionDef) -> Iterator[ast.expr]:
    for node in _own_nodes(function):
        if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
            yield node.value


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Without those of functions inside of it, in the order of the text."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, _SCOPES):
            continue
        yield node
        yield from _own_nodes(node)


def _leaves(
    node: ast.expr, function: ast.FunctionDef, place: tuple[str, ...], depth: int
) -> tuple[Leaf, ...]:
    if depth > 4:
        return (Leaf(place, ""),)
    if isinstance(node, ast.Tuple | ast.List) and node.elts:
        sign = "(" if isinstance(node, ast.Tuple) else "["
        return tuple(
            leaf
            for count, item in enumerate(node.elts)
            for leaf in _leaves(item, function, (*place, f"{sign}{count}"), depth + 1)
        )
    if isinstance(node, ast.Dict) and (keys := _keys(node)):
        return tuple(
            Leaf(leaf.place, key)
            for key, item in zip(keys, node.values, strict=True)
            for leaf in _leaves(item, function, (*place, f"{{{key}"), depth + 1)
        )
    if isinstance(node, ast.Call) and _LOADER.search(_name(node.func)):
        return (Leaf((*place, "@"), "batch"),)
    if isinstance(node, ast.Name) and (made := _assigned(node.id, function)) is not None:
        return _leaves(made, function, place, depth + 1)
    return (Leaf(place, _name(node)),)


def _keys(node: ast.Dict) -> list[str]:
    """Where all of them are texts."""
    keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
    texts = [key for key in keys if isinstance(key, str)]
    return texts if len(texts) == len(node.keys) else []


def _assigned(name: str, function: ast.FunctionDef) -> ast.expr | None:
    """The tuple, dictionary or loader that a name was set to; an empty one is filled elsewhere."""
    for node in _own_nodes(function):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            value = node.value
            if isinstance(value, ast.Dict) and value.keys:
                return value
            if isinstance(value, ast.Tuple) and value.elts:
                return value
            if isinstance(value, ast.Call) and _LOADER.search(_name(value.func)):
                return value
    return None


def _name(node: ast.expr) -> str:
    """What the code calls a value: the innermost name of an expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    if isinstance(node, ast.Call):
        inner = [_name(item) for item in node.args]
        return next(filter(None, inner), "") or _name(node.func)
    return ""
