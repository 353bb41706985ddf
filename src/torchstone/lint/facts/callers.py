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
        for call in other.calls.get(function.name, ()) if other is not None else ():
            target = target_of(other, call) if other is not None else None
            if target is not None and other is not None and _same(target, scene, function):
                found.append((other, call))
    return found


def _same(target: tuple[Scene, Function], scene: Scene, function: Function) -> bool:
    return target[0].path == scene.path and target[1].lineno == function.lineno
