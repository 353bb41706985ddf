"""Which functions of a project half precision can reach; asked before anything is worked out.

Walking every function costs more than all rules together. Half precision comes from somewhere: a
function that speaks of it, what such a function calls, and what calls it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from torchstone.lint.facts.summary import calls_below
from torchstone.lint.values.halved import is_halved
from torchstone.sources.files import WORDS, Files, called_in
from torchstone.sources.scene import FUNCTIONS, Function, Scene

HALF_WORDS = ("float16", "bfloat16", "half", "autocast", "HalfTensor", "BFloat16Tensor")
"""A file that holds none of these says nothing of half precision."""
_NEEDLES = tuple(word.encode() for word in HALF_WORDS)
_DEFINITION = re.compile(rb"(?:^|\n)[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)")


class Speakers(NamedTuple):
    """The functions of a project that speak of half precision."""

    names: frozenset[bytes]
    words: frozenset[bytes]
    """Every word that they hold: the classes that they know are among them."""
    called: frozenset[bytes]
    """The words that a bracket follows."""


def speaks_of_half(scene: Scene) -> bool:
    """Whether half precision is mentioned in the file at all; cheap, and asked first."""
    found = scene.cache.get("speaks of half")
    if found is None:
        text = scene.source.text
        found = scene.cache["speaks of half"] = any(word in text for word in HALF_WORDS)
    return bool(found)


_LOSS_WORDS = ("Loss", "softmax", "Softmax", "sigmoid", "Sigmoid", "DataParallel")
_TOLD_BY = ("softmax", "sigmoid", "Softmax", "Sigmoid", "torch.arange(", "torch.zeros(", "torch.ones(",
            "torch.linspace(", "torch.eye(", "torch.rand(", "torch.randn(", "from_numpy(")  # fmt: skip


def hands_on(scene: Scene) -> bool:
    """Whether a file makes losses, probabilities or wrapped models, which it may hand on."""
    found = scene.cache.get("hands on")
    if found is None:
        text = scene.source.text
        found = scene.cache["hands on"] = any(word in text for word in _LOSS_WORDS)
    return bool(found)


def tells(scene: Scene, function: ast.AST) -> bool:
    """Whether a function's own words tell something of its answer: probabilities, or where it is."""
    known: dict[ast.AST, bool] = scene.cache.setdefault("tells", {})
    if function not in known:
        text = scene.text(function)
        known[function] = any(word in text for word in _TOLD_BY)
    return known[function]


def half_may_reach(scene: Scene, node: ast.AST) -> bool:
    """Whether half precision can come to a place."""
    if not scene.project.path_of(scene):
        return speaks_of_half(scene)  # a text that is no file of the project
    if not speakers_of(scene.project).words:
        return False
    scope: ast.AST = node
    while not isinstance(scope, ast.Module):
        scope = scene.scope(scope)
        if isinstance(scope, FUNCTIONS) and _reaches(scene, scope):
            return True
    return scene.function(node) is None and speaks_of_half(scene)


def _reaches(scene: Scene, function: Function) -> bool:
    known: dict[ast.AST, bool] = scene.cache.setdefault("half reaches", {})
    if function not in known:
        known[function] = _looked_up(scene, function)
    return known[function]


def is_called_near_half(scene: Scene, function: Function) -> bool:
    """Whether a function that speaks of half precision may call this one, or its object."""
    speakers, owner = speakers_of(scene.project), scene.parent(function)
    if isinstance(owner, ast.ClassDef) and _is_implicit(function):
        return owner.name.encode("utf-8", "replace") in speakers.words
    return function.name.encode("utf-8", "replace") in speakers.called


def _is_implicit(function: Function) -> bool:
    """Whether the name of its class stands where a function is called."""
    return function.name in ("forward", "__init__", "__call__")


def _looked_up(scene: Scene, function: Function) -> bool:
    names, words, called_words = speakers_of(scene.project)
    owner = scene.parent(function)
    name = function.name.encode("utf-8", "replace")
    if any(word in scene.text(function) for word in HALF_WORDS):
        return True
    if not _is_implicit(function) and (name in names or name in called_words):
        return True
    if isinstance(owner, ast.ClassDef) and _is_implicit(function):
        if owner.name.encode("utf-8", "replace") in words or is_halved(scene, owner):
            return True
    called = {scene.last_name(call.func) for call in calls_below(function)}
    return any(is_speaker(scene.project, item) for item in called - {"forward", "__init__"})


def is_speaker(project: Files, name: str) -> bool:
    """Whether a function of this name speaks of half precision somewhere in the project."""
    return name.encode("utf-8", "replace") in speakers_of(project).names


def speakers_of(project: Files) -> Speakers:
    """One pass over the files of a run that speak of half precision."""
    project.shared = True
    found: Speakers | None = project.summaries.get("speakers")
    if found is None:
        names: set[bytes] = set()
        words: set[bytes] = set()
        called: set[bytes] = set()
        for data in project.contents():
            if any(needle in data for needle in _NEEDLES):
                for name, segment in _functions_in(data):
                    if any(needle in segment for needle in _NEEDLES):
                        names.add(name)
                        words.update(segment.translate(WORDS).split())
                        called.update(called_in(segment))
        found = Speakers(frozenset(names), frozenset(words), frozenset(called))
        project.summaries["speakers"] = found
    return found


def _functions_in(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The functions of a file with their text, and what stands before the first."""
    starts = list(_DEFINITION.finditer(data))
    cuts = [0, *(match.start() for match in starts), len(data)]
    names_of = [b"", *(match[1] for match in starts)]
    for name, start, end in zip(names_of, cuts, cuts[1:], strict=False):
        yield name, data[start:end]
