"""The call that made a value, through the functions of the project that return it."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torchstone.lint.facts.origins import origins
from torchstone.sources.scene import Scene


class Maker(NamedTuple):
    """A call, and the file that it stands in."""

    scene: Scene
    call: ast.Call

    @property
    def name(self) -> str:
        """The full name of what is called."""
        return self.scene.qualified(self.call.func)


def maker_of(scene: Scene, node: ast.AST | None) -> Maker | None:
    """What made the value of an expression, when all ways to it agree: a class of the project, or
    something outside of it."""
    if not isinstance(node, ast.expr):
        return None
    places = origins(scene, node)
    found = [
        Maker(place.scene, place.node)
        for place in places
        if isinstance(place.node, ast.Call) and not place.path
    ]
    if not found or len(found) != len(places):
        return None
    return found[0] if all(item.name == found[0].name for item in found) else None
