"""Where parameters are frozen and freed again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torchstone.sources.scene import LOOPS, Scene


class Freeze(NamedTuple):
    """A place that sets requires_grad of all parameters of something."""

    of: str
    """What is frozen or freed, as written (`model.fc`)."""
    on: bool | None
    """The new value; None when it is computed."""
    node: ast.stmt
    """The statement, or the loop over the parameters."""
    whole: bool
    """False when only some of the parameters are set (under an `if`)."""


def parameters_of(scene: Scene, node: ast.AST | None) -> str:
    """`model` for `model.parameters()` or `model.named_parameters()`, else ""."""
    if isinstance(node, ast.Call) and scene.method(node) in ("parameters", "named_parameters"):
        return scene.dotted(scene.receiver(node))
    return ""


def freezes(scene: Scene) -> list[Freeze]:
    """Every place of a file that sets requires_grad, in order."""
    found: list[Freeze] | None = scene.cache.get("freezes")
    if found is None:
        found = sorted(_freezes(scene), key=lambda item: item.node.lineno)
        scene.cache["freezes"] = found
    return found


def _freezes(scene: Scene) -> Iterator[Freeze]:
    for call in scene.calls.get("requires_grad_", ()):
        on = scene.literal(scene.argument(call, 0, "requires_grad")) if call.args else True
        if call.keywords:
            on = scene.literal(call.keywords[0].value)
        yield _freeze(scene, call, scene.receiver(call), on if isinstance(on, bool) else None)
    for statement in scene.all(ast.Assign):
        target = statement.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
            on = scene.literal(statement.value)
            yield _freeze(scene, statement, target.value, on if isinstance(on, bool) else None)


def _freeze(scene: Scene, node: ast.AST, of: ast.expr | None, on: bool | None) -> Freeze:
    statement = scene.statement(node)
    assert statement is not None
    whole, child = True, node
    for up in scene.ancestors(node):
        if isinstance(up, (ast.If, ast.Try, ast.IfExp)):
            whole = False
        if isinstance(up, LOOPS) and child in up.body:
            if isinstance(up, ast.For) and _is_target(up.target, of):
                module = parameters_of(scene, up.iter)
                if module:
                    return Freeze(module, on, up, whole)
            break
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            break
        child = up
    return Freeze(scene.dotted(of), on, statement, whole)


def _is_target(target: ast.expr, of: ast.expr | None) -> bool:
    """Whether a loop's target (`p`, or the last of `name, p`) is what is set."""
    if isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[-1]
    return isinstance(target, ast.Name) and isinstance(of, ast.Name) and target.id == of.id
