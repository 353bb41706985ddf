"""The calls of a function in all files of the project."""

from __future__ import annotations

import ast
from pathlib import PurePath

from torchstone.sources.scene import Function, Scene
from torchstone.sources.targets import target_of

_FILES = 8  # a name that more files call is too common to be followed

Site = tuple[Scene, ast.Call]


def calls_of(scene: Scene, function: Function) -> list[Site] | None:
    """Every call of a function; None when its name is called in too many files to tell. What runs
    `__init__` are the calls of its class."""
    owner = scene.parent(function)
    if isinstance(owner, ast.ClassDef) and function.name == "__init__":
        return calls_of_class(scene, owner)
    homes = scene.project.files_that_call(function.name)
    if len(homes) > _FILES:
        # only files that name this one can call its function; `main` and `test` are in every file
        stem = PurePath(scene.path).stem
        near = scene.project.files_that_name(homes, stem if stem != "__init__" else function.name)
        own = scene.project.path_of(scene)
        homes = list(dict.fromkeys([*(path for path in homes if path == own), *near]))
    if len(homes) > _FILES:
        return None
    found: list[Site] = []
    for path in homes:
        other = scene.project.load(path, scene)
        if other is not None:
            rows = _by_target(other, function.name).get((scene.path, function.lineno), ())
            found += [(other, call) for call in rows]
    return found


def calls_of_class(scene: Scene, owner: ast.ClassDef) -> list[Site] | None:
    """The calls that make objects of a class; None when its name is called in too many files."""
    project, found = scene.project, []
    homes = project.files_that_call(owner.name)
    for path in homes if len(homes) <= _FILES else ():
        other = project.load(path, scene)
        for call in other.calls.get(owner.name, ()) if other is not None else ():
            assert other is not None
            named = project.class_named(other, call.func, other.qualified(call.func))
            if (
                named is not None
                and named[1].lineno == owner.lineno
                and named[0].path == scene.path
            ):
                found.append((other, call))
    return found if len(homes) <= _FILES else None


def _by_target(scene: Scene, name: str) -> dict[tuple[str, int], list[ast.Call]]:
    """The calls of a name in one file by the function that they run; worked out once."""
    tables: dict[str, dict[tuple[str, int], list[ast.Call]]] = scene.cache.setdefault(
        "by target", {}
    )
    if name not in tables:
        table = tables[name] = {}
        for call in scene.calls.get(name, ()):
            target = target_of(scene, call)
            if target is not None:
                table.setdefault((target[0].path, target[1].lineno), []).append(call)
    return tables[name]
