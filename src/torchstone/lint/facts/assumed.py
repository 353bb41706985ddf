"""Whether what a finding rests on is known, or taken for granted.

An object that a factory of another package made, that was passed in from nowhere, or that is handed to
code which nobody can read may be, or may become, something else than the rule thinks.
"""

from __future__ import annotations

import ast
import re

from torchstone.core.pattern import pattern
from torchstone.lint.facts.callers import calls_of
from torchstone.lint.facts.origins import Place, origins
from torchstone.lint.facts.summary import calls_below, handed, summary_at
from torchstone.lint.knowledge.flow import parameters, passed
from torchstone.sources.scene import Scene

_DEPTH = 3  # callers of callers
# what is told of an object without changing what it does
_LOOKS = pattern(r"log|print|sched|warmup|save|summary|len$|repr|count|watch|describe", re.I)


def is_assumed(scene: Scene, subject: ast.expr, place: ast.AST) -> bool:
    """Whether it is unknown how a subject was made, or what others do to it around a place."""
    return not is_made_here(scene, subject) or _goes_away(scene, subject, place)


def is_made_here(scene: Scene, subject: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether torch or a class of the project made a value, whichever way it came."""
    places = origins(scene, subject)
    return bool(places) and all(_is_known(place, depth) for place in places)


def _is_known(place: Place, depth: int) -> bool:
    scene, node = place.scene, place.node
    if isinstance(node, ast.Call):
        full = scene.qualified(node.func)
        if full.startswith(("torch.", "torchvision.")):
            return True
        return scene.project.class_named(scene, node.func, full) is not None
    if isinstance(node, ast.Name) and depth:
        return _is_known_to_callers(scene, node, depth)
    return False


def _is_known_to_callers(scene: Scene, name: ast.Name, depth: int) -> bool:
    """Whether every call of the function, in whatever file, passes something that is known."""
    function = scene.function(name)
    if function is None or name.id not in parameters(function):
        return False
    sites = calls_of(scene, function) or []
    given = [(home, passed(home, site, function, name.id)) for home, site in sites]
    return bool(given) and all(
        value is not None and is_made_here(home, value, depth - 1) for home, value in given
    )


def _goes_away(scene: Scene, subject: ast.expr, place: ast.AST) -> bool:
    """Whether the function hands the subject to a call that cannot be followed."""
    name = scene.dotted(subject)
    root = scene.function(place) or scene.root
    return bool(name) and any(
        name in handed(scene, call)
        and not _LOOKS.search(scene.last_name(call.func))
        and summary_at(scene, call) is None
        and not _is_own_method(scene, call, name)
        for call in calls_below(root)
    )


def _is_own_method(scene: Scene, call: ast.Call, name: str) -> bool:
    """Whether a call is of the subject itself or of a method of it: `model(x)`, `optimizer.step()`."""
    receiver = scene.dotted(call.func)
    return receiver == name or receiver.startswith(f"{name}.")
