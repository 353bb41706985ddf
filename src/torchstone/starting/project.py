"""What a project's own files say about how it is imported; parsed, never run."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchstone.core.files import read_regular

_BYTES = 1 << 20
_MOST_FILES = 2000
_MARKS = (
    ".git",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "README.md",
    "README.rst",
    "README",
)
_LEVELS = 4
_SKIPPED = frozenset(
    (".git", ".venv", "venv", "env", "node_modules", "__pycache__", ".tox", "site-packages")
)
_GUARDS = frozenset(("ImportError", "ModuleNotFoundError", "Exception", "BaseException"))


def project_root(script: Path) -> Path:
    """The folder of the project that a script belongs to: the nearest one with a mark of a project."""
    home = script.resolve().parent
    for folder in (home, *home.parents[:_LEVELS]):
        if any((folder / name).exists() for name in _MARKS):
            return folder
    return home


@dataclass(frozen=True, slots=True)
class Imports:
    """Top names that the files of a project import, apart from those that are tried in a `try`."""

    needed: frozenset[str]
    through_torch: frozenset[str]
    """Packages that parts of torch need and do not bring: `torch.utils.tensorboard`."""
    modules: dict[str, str]
    """Modules and packages of the project by name, with the folder they are imported from."""


def read_imports(root: Path) -> Imports:
    """One walk over the project."""
    needed: set[str] = set()
    through: set[str] = set()
    modules: dict[str, str] = {}
    for count, path in enumerate(python_files(root)):
        if count > _MOST_FILES:
            break
        home = path.parent
        modules.setdefault(path.stem, str(home))
        if home != root:
            modules.setdefault(home.name, str(home.parent))
        try:
            tree = ast.parse(read_regular(path, _BYTES))
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        needed |= set(_unguarded(tree.body))
        if any(_names_tensorboard(node) for node in ast.walk(tree)):
            through.add("tensorboard")
    return Imports(frozenset(needed), frozenset(through), modules)


def _names_tensorboard(node: ast.AST) -> bool:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    return any(name.startswith("torch.utils.tensorboard") for name in names)


def python_files(root: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        yield from (Path(place, name) for name in sorted(names) if name.endswith(".py"))


def _unguarded(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Try) and _catches_imports(node):
            for handler in node.handlers:
                yield from _unguarded(handler.body)
        else:
            for name in ("body", "orelse", "finalbody"):
                yield from _unguarded(getattr(node, name, []) or [])


def _catches_imports(node: ast.Try) -> bool:
    return any(
        handler.type is None or any(word in ast.unparse(handler.type) for word in _GUARDS)
        for handler in node.handlers
    )


def is_importable(name: str, packages: Sequence[str] = ()) -> bool:
    """Whether Python finds a module of this name in this environment, or in these folders of another."""
    for folder in packages:
        if Path(folder, name).is_dir() or any(Path(folder).glob(f"{name}.*")):
            return True
    if name in sys.builtin_module_names or name in sys.stdlib_module_names:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False
