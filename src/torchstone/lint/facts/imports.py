"""Whether what a file imports from its own project is there.

What cannot be seen is taken to be there: modules that are built or generated, names that are set in ways
nobody can read, packages of others that have the name of a folder.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import PurePosixPath
from typing import NamedTuple

from torchstone.core.pattern import pattern
from torchstone.lint.facts.members import outline_of
from torchstone.sources.files import Files
from torchstone.sources.scene import Scene

_TAIL = 6  # folders of a path that an import can name
_MADE = pattern(
    r"^_|^version$|_pb2|_ext$|_cuda$|_cpp$|cython|local|secret|private|credential", re.I
)
"""Modules that are built, generated or kept out of the repository."""
_DYNAMIC = pattern(r"importlib|meta_path|__path__|sys\.modules|LazyModule|attach_stub")
_OF_OTHERS = frozenset(
    "transformers datasets evaluate accelerate diffusers timm apex fairseq detectron2 mmcv mmdet mmseg "
    "mmengine clip tokenizers peft trl wandb deepspeed megatron lightning pytorch_lightning torchvision "
    "torchaudio torchtext torch numpy scipy sklearn utils_ test tests typing_extensions".split()
)
"""Packages that projects keep a folder of the same name beside."""


_IMPORTED = re.compile(rb"\n[ \t]*(?:from|import)[ \t]+(\w+\.[\w.]+)")


class Lack(NamedTuple):
    """Something that an import names and the project does not have."""

    name: str
    """"" where the module itself is not there."""
    near: tuple[str, ...]
    """What there is instead."""


class _Layout(NamedTuple):
    """The ends of all paths of a project, without suffixes."""

    modules: dict[str, int]
    folders: frozenset[str]
    built: frozenset[str]
    """Words of the files that build a project."""
    dynamic: frozenset[str]
    """Packages that look for their modules in a way of their own."""
    imported: frozenset[str]
    """The first names under which something of the project is imported and found."""


def lack_of(scene: Scene, node: ast.ImportFrom, alias: ast.alias) -> Lack | None:
    """What an import names and the project does not have; None where it may be there."""
    layout = _layout_of(scene.project)
    tail = _relative(scene, node) if node.level else _absolute(scene, node.module or "", layout)
    if not tail or any(up in layout.dynamic for up in _ups(tail)):
        return None
    if tail in layout.modules or tail in layout.folders:
        return None if alias.name == "*" else _lack_in(scene, node, tail, alias.name, layout)
    beside, _, last = tail.rpartition("/")
    if _MADE.search(last) or last in layout.built or _is_on_disk(scene, tail):
        return None
    near = {path[len(beside) + 1 :] for path in layout.modules if path.startswith(f"{beside}/")}
    return Lack("", tuple(item for item in near if "/" not in item))


def _ups(tail: str) -> list[str]:
    """A path and the folders above it."""
    parts = tail.split("/")
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]


def _lack_in(
    scene: Scene, node: ast.ImportFrom, tail: str, name: str, layout: _Layout
) -> Lack | None:
    inner = "/".join(f"{tail}/{name}".split("/")[-_TAIL:])
    if inner in layout.modules or inner in layout.folders or _MADE.search(name):
        return None
    module = scene.imports.aliases.get(name, "").rpartition(".")[0] or (node.module or "")
    path = scene.project.find(module, scene.path)
    other = scene.project.load(path, scene) if path and layout.modules.get(tail) == 1 else None
    if other is None or other is scene or _is_on_disk(scene, inner) or name in layout.built:
        return None
    if name in other.bound or name in other.imports.aliases:
        return None
    if "__getattr__" in other.bound or not other.calls.keys().isdisjoint(_HIDING):
        return None
    if name.encode() in outline_of(scene.project).set_outside:
        return None
    for star in other.imports.stars:
        seen = scene.project.find(star, other.path) is not None
        if not seen or scene.project.star(star, name, other.path):
            return None
    return Lack(name, tuple(other.bound | other.imports.aliases.keys()))


_HIDING = frozenset(("globals", "vars", "exec", "setattr", "import_module", "__import__"))


def _relative(scene: Scene, node: ast.ImportFrom) -> str:
    """The end of the path that a relative import names."""
    place = scene.project.path_of(scene)
    folder = PurePosixPath(place).parents[node.level - 1] if place else PurePosixPath()
    inner = node.module.split(".") if node.module else []
    return "/".join([*folder.parts[1:], *inner][-_TAIL:])


def _absolute(scene: Scene, module: str, layout: _Layout) -> str:
    """The path of a module, when its first name is a folder of the project and of nobody else."""
    top, dot, _ = module.partition(".")
    own = scene.module.partition(".")[0] == top
    if not dot or top in sys.stdlib_module_names or top not in layout.imported:
        return ""
    if top in _OF_OTHERS and not own:
        return ""
    for base in PurePosixPath(scene.project.path_of(scene)).parents:
        if os.path.isdir(f"{base}/{top}") and not os.path.exists(f"{base}/__init__.py"):
            return module.replace(".", "/")
    return ""


def _is_on_disk(scene: Scene, tail: str) -> bool:
    """Whether something that is no Python source stands where a module is looked for."""
    for base in PurePosixPath(scene.project.path_of(scene)).parents:
        folder, _, name = f"{base}/{tail}".rpartition("/")
        if os.path.isdir(folder):
            names = os.listdir(folder)
            if any(item.partition(".")[0] == name and item != f"{name}.py" for item in names):
                return True
    return False


def _layout_of(project: Files) -> _Layout:
    found: _Layout | None = project.summaries.get("layout")
    if found is None:
        modules: dict[str, int] = {}
        folders: set[str] = set()
        built: set[str] = set()
        dynamic: set[str] = set()
        for path in project.paths:
            parts = path.removesuffix(".py").removesuffix(".pyi").split("/")
            if parts[-1] in ("setup", "build", "conftest"):
                built.update(re.findall(r"\w+", project.text_of(path)))
            if parts[-1] == "__init__":
                parts.pop()
                if _DYNAMIC.search(project.text_of(path)):
                    dynamic.update("/".join(parts[-size:]) for size in range(1, _TAIL + 1))
            for size in range(1, min(_TAIL, len(parts)) + 1):
                tail = "/".join(parts[-size:])
                modules[tail] = modules.get(tail, 0) + 1
            for end in range(len(parts) - 1, max(len(parts) - _TAIL, 0), -1):
                folders.update(
                    "/".join(parts[end - size : end]) for size in range(1, min(_TAIL, end) + 1)
                )
        named = {name for data in project.contents() for name in _IMPORTED.findall(b"\n" + data)}
        tails = {name.decode("utf-8", "replace").replace(".", "/") for name in named}
        imported = {tail.partition("/")[0] for tail in tails if tail in modules}
        found = _Layout(
            modules, frozenset(folders), frozenset(built), frozenset(dynamic), frozenset(imported)
        )
        project.summaries["layout"] = found
    return found
