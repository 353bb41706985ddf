"""Scripts that torchrun starts: recognised by what they ask of their environment, never executed."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

_GIVEN = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
"""Variables that torchrun sets for each process."""
_STARTS_ITS_OWN = frozenset({"spawn", "start_processes", "notebook_launcher", "ProcessGroupGloo"})
"""A script that starts its ranks itself is run as it is."""


def is_for_torchrun(target: str) -> bool:
    """Does a script, or a file beside it that it imports, expect the variables of torchrun?"""
    script = Path(target)
    if script.suffix != ".py" or not script.is_file() or _GIVEN & os.environ.keys():
        return False
    trees = [tree for path in _files(script) if (tree := _parsed(path)) is not None]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    if any(_called(node) in _STARTS_ITS_OWN or _is_set(node) or _is_asked(node) for node in nodes):
        return False
    return any(_is_read(node) or _joins_by_environment(node) for node in nodes)


def _files(script: Path) -> Iterator[Path]:
    """The script, and the files of its folder that it imports itself."""
    yield script
    tree = _parsed(script)
    for node in ast.walk(tree) if tree is not None else ():
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
        for name in names:
            path = script.parent.joinpath(*name.split(".")).with_suffix(".py")
            if path.is_file():
                yield path


def _parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # the run itself reports it
        return None


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_set(node: ast.AST) -> bool:
    """`os.environ["RANK"] = …`, or a default for it."""
    if isinstance(node, ast.Call) and _called(node) == "setdefault":
        return _names_one(node.args[0]) if node.args else False
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(item, ast.Subscript) and _names_one(item.slice) for item in targets)


def _is_read(node: ast.AST) -> bool:
    """`os.environ["RANK"]`, which fails without torchrun; a default would do without it."""
    environment = isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ")
    return environment and isinstance(node, ast.Subscript) and _names_one(node.slice)


def _is_asked(node: ast.AST) -> bool:
    """`os.environ.get("RANK", -1)` or `"RANK" in os.environ`: the script goes on without torchrun."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
        return _is_of_job(node.left) and ast.unparse(node.comparators[0]).endswith("environ")
    return _called(node) in ("get", "getenv") and any(map(_is_of_job, getattr(node, "args", ())))


def _is_of_job(node: ast.expr) -> bool:
    """The rank and the number of ranks; a local rank alone is often asked for with a default."""
    return isinstance(node, ast.Constant) and node.value in ("RANK", "WORLD_SIZE")


def _joins_by_environment(node: ast.AST) -> bool:
    """`init_process_group` that is told neither its rank nor where to meet."""
    if not isinstance(node, ast.Call) or _called(node) != "init_process_group":
        return False
    given = {word.arg: word.value for word in node.keywords}
    method = given.get("init_method")
    elsewhere = method is not None and not (
        isinstance(method, ast.Constant) and str(method.value).startswith("env")
    )
    return not elsewhere and not given.keys() & {"rank", "store", "world_size"}


def _names_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in _GIVEN
