"""Texts that a program knows for one of its arguments: keys of the table that it looks the argument up in, or
what it compares it with."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path

from torchstone.core.files import read_regular
from torchstone.sources.discover import SKIPPED

_MOST_FILES = 200
"""Files that are read for one argument: the parser and what uses it lie near each other."""
_BYTES = 1 << 20


def known_values(name: str, folder: Path) -> tuple[str, ...]:
    """Texts for the argument `name` that the code below a folder goes on with, the surest first."""
    looked_up: dict[str, None] = {}
    compared: dict[str, None] = {}
    for tree in _trees(name, folder):
        tables = dict(_tables(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and _names(node.slice, name):
                looked_up |= dict.fromkeys(tables.get(_last(node.value), ()))
            elif isinstance(node, ast.Compare) and _names(node.left, name):
                compared |= dict.fromkeys(_texts(node))
    return (*looked_up, *(item for item in compared if item not in looked_up))


def _trees(name: str, folder: Path) -> Iterator[ast.Module]:
    files = (
        path
        for path in sorted(folder.rglob("*.py"), key=lambda item: (len(item.parts), str(item)))
        if not SKIPPED & set(path.relative_to(folder).parts)
    )
    for path in itertools.islice(files, _MOST_FILES):
        try:
            text = read_regular(path, _BYTES)
            if name.encode() in text:
                yield ast.parse(text)
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue  # another file may say it


def _tables(tree: ast.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Dictionaries with texts as keys, by the names that they are assigned to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            keys = tuple(
                key.value
                for key in node.value.keys
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            )
            for target in node.targets:
                if keys and _last(target):
                    yield _last(target), keys


def _names(node: ast.expr, name: str) -> bool:
    """`args.name`, `name`, or a method of it: `args.name.lower()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return _names(node.func.value, name)
    return _last(node) == name


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _texts(node: ast.Compare) -> Iterator[str]:
    """What an argument is compared with, where the comparison holds for it."""
    operator, other = node.ops[0], node.comparators[0]
    if isinstance(operator, ast.Eq) and isinstance(other, ast.Constant):
        found: list[ast.expr] = [other]
    elif isinstance(operator, ast.In) and isinstance(other, ast.List | ast.Tuple | ast.Set):
        found = other.elts
    else:
        return
    for item in found:
        if isinstance(item, ast.Constant) and isinstance(item.value, str) and item.value:
            yield item.value
