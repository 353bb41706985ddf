"""The calls of a function in all files of the project."""

from __future__ import annotations

import ast
from pathlib import PurePath

from torchstone.sources.scene import Function, Scene
from torchstone.sources.targets import target_of

_FILES = 8  # a name that more files call is too common to be followed

Site = tuple[Scene, ast.Call]


def calls_of(scene: Scene, function: Function) -> list[Site] | None:
    """Every call of a function; None when its name is called in too many files to tell."""
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
