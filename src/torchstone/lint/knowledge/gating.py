"""Whether a place, or a value, depends on the module being in training mode."""

from __future__ import annotations

import ast

from torchstone.lint.knowledge.flow import reaches
from torchstone.sources.scene import FUNCTIONS, Scene

_WORDS = ("training", "train", "is_train", "is_training", "eval", "deterministic", "inference")


def mentions_mode(scene: Scene, node: ast.AST | None) -> bool:
    """Whether an expression reads something that tells training from evaluation."""
    if node is None:
        return False
    return any(
        any(word in scene.last_name(part).lower() for word in _WORDS)
        for part in scene.inside(node)
        if isinstance(part, (ast.Name, ast.Attribute))
    )


def gated_by_mode(scene: Scene, node: ast.AST, value: ast.AST | None) -> bool:
    """Whether a node runs only in training, or a value it uses was chosen by the mode."""
    if mentions_mode(scene, value) or _chosen(scene, value):
        return True
    child = node
    for up in scene.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp, ast.While)) and mentions_mode(scene, up.test):
            return True
        if isinstance(up, ast.BoolOp) and mentions_mode(scene, up):
            return True
        if isinstance(up, FUNCTIONS):
            return _left_early(scene, up, node)
        child = up
    return child is None


def _chosen(scene: Scene, value: ast.AST | None) -> bool:
    """Whether a name's bindings, or the branches around them, ask for the mode."""
    if not isinstance(value, ast.Name):
        return False
    for row in scene.bindings(value):
        if mentions_mode(scene, row.value):
            return True
        for up in scene.ancestors(row.node):
            if isinstance(up, ast.If) and mentions_mode(scene, up.test):
                return True
            if isinstance(up, FUNCTIONS):
                break
    return False


def _left_early(scene: Scene, function: ast.AST, node: ast.AST) -> bool:
    """`if not self.training: return x` earlier in the function."""
    return any(
        scene.within(item, function)
        and isinstance(item.body[-1], (ast.Return, ast.Raise))
        and mentions_mode(scene, item.test)
        and reaches(scene, item, node)
        for item in scene.all(ast.If)
    )
