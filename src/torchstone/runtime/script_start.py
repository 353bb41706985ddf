"""Start a user's script the way its own imports need it: as a file, or as a module of its package."""

from __future__ import annotations

import ast
import importlib.util
import runpy
import sys
from pathlib import Path
from typing import Any


def start_script(script: str) -> dict[str, Any]:
    """`python SCRIPT`; or `python -m package.module` for a file that imports its own package. Returns its names."""
    path = Path(script).resolve()
    root = package_root(path)
    if root is None:
        sys.path.insert(0, str(path.parent))
        return runpy.run_path(script, run_name="__main__")
    sys.path.insert(0, str(root))
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    return runpy.run_module(name, run_name="__main__", alter_sys=True)


def package_root(path: Path) -> Path | None:
    """The folder from which the file is a module; None where it runs as it lies there.

    A relative import needs a package. So does an absolute import of a folder that the file lies in.
    """
    tops, relative = _imports(path)
    if relative:
        folder = path.parent.parent
        while (folder / "__init__.py").exists():
            folder = folder.parent
        return folder
    for folder in path.parents:
        name = folder.name
        beside = any((path.parent / item).exists() for item in (name, f"{name}.py"))
        if name in tops and not beside and not _is_installed(name):
            return folder.parent
    return None


def _is_installed(name: str) -> bool:
    """Whether the name means something without the file: a folder may be called `torch`."""
    try:
        return name in sys.builtin_module_names or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _imports(path: Path) -> tuple[set[str], bool]:
    """First names of absolute imports, and whether there are relative ones."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return set(), False  # running it will say what is wrong
    tops: set[str] = set()
    relative = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            tops.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            relative = relative or node.level > 0
            if not node.level and node.module:
                tops.add(node.module.partition(".")[0])
    return tops, relative
