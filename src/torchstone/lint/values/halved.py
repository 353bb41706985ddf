"""Classes of networks of which the project casts an object to half precision."""

from __future__ import annotations

import ast

from torchstone.lint.values.dtypes import CASTS, TENSOR_TYPES
from torchstone.lint.values.value import HALVES
from torchstone.sources.scene import Scene
from torchstone.sources.targets import class_of_value

_WORDS = ("half", "float16", "HalfTensor", "BFloat16Tensor")
_FILES = 8  # a class that more files make objects of is not followed
_DEPTH = 3  # networks within networks


def is_halved(scene: Scene, owner: ast.ClassDef, depth: int = _DEPTH) -> str:
    """The half type to which an object of a class is cast, alone or as part of another; else ""."""
    project = scene.project
    if not any(project.mentions(word) for word in _WORDS):
        return ""
    known: dict[tuple[str, int], str] = project.summaries.setdefault("halved", {})
    key = (scene.path, owner.lineno)
    if key not in known:
        known[key] = ""  # a class that holds itself adds nothing
        known[key] = _halved(scene, owner, depth)
    return known[key]


def _halved(scene: Scene, owner: ast.ClassDef, depth: int) -> str:
    project = scene.project
    paths = project.files_that_call(owner.name)
    for path in paths if len(paths) <= _FILES else ():
        other = project.load(path, scene)
        if other is None:
            continue
        found = _casts(other).get((scene.path, owner.lineno), "")
        for call in other.calls.get(owner.name, ()) if depth and not found else ():
            outer = other.class_of(call)
            if outer is not None and outer is not owner and other.is_module_class(outer):
                found = found or is_halved(other, outer, depth - 1)
        if found:
            return found
    return ""


def _casts(scene: Scene) -> dict[tuple[str, int], str]:
    """The classes, by file and line, of which this file casts an object, with the type."""
    found: dict[tuple[str, int], str] | None = scene.cache.get("cast classes")
    if found is None:
        found = scene.cache["cast classes"] = {}
        for name in ("half", "bfloat16", "to", "type"):
            for call in scene.calls.get(name, ()):
                dtype = half_cast(scene, call)
                made = class_of_value(scene, scene.receiver(call)) if dtype else None
                if made is not None:
                    found[made[0].path, made[1].lineno] = dtype
    return found


def half_cast(scene: Scene, call: ast.Call) -> str:
    """The half type that a call casts to as far as its own words tell; else ""."""
    method = scene.method(call)
    if method in ("half", "bfloat16"):
        return CASTS[method] if not call.args and not call.keywords else ""
    if method not in ("to", "type"):
        return ""
    named = scene.keyword(call, "dtype")
    for given in (*call.args, *([named] if named is not None else ())):
        last = scene.last_name(given) or str(scene.literal(given)).rpartition(".")[2]
        dtype = scene.dtype_literal(given) or TENSOR_TYPES.get(last, "")
        if dtype in HALVES:
            return dtype
    return ""
