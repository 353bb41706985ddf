"""The call that made a value, through the functions of the project that return it."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torchstone.lint.facts.resolve import Target, target_of
from torchstone.lint.knowledge.flow import made, own_nodes
from torchstone.sources.scene import Function, Scene

_DEPTH = 3  # factories of factories; deeper ones are rare and cost a parsed file each


class Maker(NamedTuple):
    """A call, and the file that it stands in."""

    scene: Scene
    call: ast.Call

    @property
    def name(self) -> str:
        """The full name of what is called."""
        return self.scene.qualified(self.call.func)


def maker_of(scene: Scene, node: ast.AST | None, depth: int = _DEPTH) -> Maker | None:
    """What made the value of an expression: a class of the project, or something outside of it."""
    source = made(scene, node)
    if not isinstance(source, ast.Call):
        return None
    target = target_of(scene, source) if depth else None
    if target is None:
        return Maker(scene, source)
    return _returned(target, depth)


def _returned(target: Target, depth: int) -> Maker | None:
    """What every `return` of a function hands out, when they agree."""
    scene, function = target
    found = [maker_of(scene, value, depth - 1) for value in returns(function)]
    first = found[0] if found else None
    if first is None or any(item is None or item.name != first.name for item in found):
        return None
    return first


def returns(function: Function) -> list[ast.expr]:
    """What the function's own `return` statements give."""
    return [
        node.value
        for node in own_nodes(function)
        if isinstance(node, ast.Return) and node.value is not None
    ]
