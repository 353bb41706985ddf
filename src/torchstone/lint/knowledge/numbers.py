"""Numbers that are written down."""

from __future__ import annotations

import ast

from torchstone.sources.scene import Scene


def number(scene: Scene, node: ast.AST | None) -> float | None:
    """The value of a number that is written down (`-1e9`, `float("-1e9")`), else None."""
    if isinstance(node, ast.Call) and scene.dotted(node.func) == "float" and len(node.args) == 1:
        text = scene.literal(node.args[0])
        try:
            return float(text) if isinstance(text, str) else None
        except ValueError:
            return None
    value = scene.literal(node)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
