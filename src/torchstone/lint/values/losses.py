"""The calls of losses in a file, by what the callee is known to be, with what they are given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from torchstone.core.pattern import pattern
from torchstone.lint.values.analysis import value_at
from torchstone.lint.values.value import Kind
from torchstone.sources.scene import Scene

_SOUNDS_LIKE_LOSS = pattern(r"loss|crit|objective|entropy|(?:^|_)(?:b?ce|nll|kl|ctc)(?:$|_)", re.I)


class LossCall(NamedTuple):
    """One call of a loss."""

    call: ast.Call
    name: str
    """The class or function: `CrossEntropyLoss`, `cross_entropy`."""
    value: ast.expr
    """What it is given as its input."""
    content: frozenset[str]
    """What the numbers of that are, one for each path."""


def loss_calls(scene: Scene, names: frozenset[str]) -> Iterator[LossCall]:
    """Calls of functions and objects of these losses of torch."""
    for call in scene.all(ast.Call):
        value = scene.argument(call, 0, "input") or scene.keyword(call, "log_probs")
        if value is None or isinstance(value, ast.Starred):
            continue
        name = _loss_named(scene, call)
        if name in names:
            yield LossCall(call, name, value, value_at(scene, value).content)


def _loss_named(scene: Scene, call: ast.Call) -> str:
    full = scene.qualified(call.func)
    if full:
        return full.rpartition(".")[2] if full.startswith("torch.nn.functional.") else ""
    if not _may_be_loss(scene, call):
        return ""
    callee = value_at(scene, call.func)
    return callee.name.rpartition(".")[2] if callee.kind is Kind.MODULE else ""


def _may_be_loss(scene: Scene, call: ast.Call) -> bool:
    """A loss gets two values at least; what is bound to one need not be called one."""
    if len(call.args) + len(call.keywords) < 2:
        return False
    if isinstance(call.func, (ast.Call, ast.Subscript)):
        return True
    name = scene.last_name(call.func)
    return bool(name) and (_SOUNDS_LIKE_LOSS.search(name) is not None or name in _bound(scene))


def _bound(scene: Scene) -> set[str]:
    """The names that a file gives to losses."""
    found: set[str] | None = scene.cache.get("names of losses")
    if found is None:
        found = scene.cache["names of losses"] = {
            scene.last_name(target)
            for statement in scene.all(ast.Assign)
            if isinstance(statement.value, ast.Call)
            and scene.last_name(statement.value.func).endswith("Loss")
            for target in statement.targets
        } - {""}
    return found
