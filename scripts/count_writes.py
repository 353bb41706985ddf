"""Writes into other objects, per 1,000 lines of each package: `count_writes.py [--list FOLDER]`.

Counted is every attribute that is assigned, augmented or deleted on anything but `self` or `cls`. An
object that the same function has just made (`made = Name(...)`, `object.__new__`) is still its own,
and so are the attributes of torch's and Python's modules that are replaced and put back by name.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "torchstone"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
OWN = ("self", "cls")


class Write(NamedTuple):
    """One assignment to a field of an object that is not the writer's."""

    path: str
    line: int
    text: str


def targets(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement assigns to, tuples taken apart."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        found = list(node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        found = [node.target]
    elif isinstance(node, ast.Delete):
        found = list(node.targets)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        found = [node.target]
    while found:
        target = found.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            found += target.elts
        elif isinstance(target, ast.Starred):
            found.append(target.value)
        else:
            yield target


def base(node: ast.expr) -> ast.expr:
    """`a` of `a.b.c`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def fresh(function: ast.AST) -> set[str]:
    """Names that a function binds to an object of its own making."""
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            func = node.value.func
            word = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            if word[:1].isupper() or word == "__new__":
                found.update(t.id for t in node.targets if isinstance(t, ast.Name))
    return found


def writes(text: str, path: str) -> Iterator[Write]:
    """The writes of one file."""
    tree = ast.parse(text)
    modules = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    owners: dict[ast.AST, set[str]] = {}
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS):
            made = fresh(function)
            for node in ast.walk(function):
                owners[node] = owners.get(node, set()) | made
    for node in ast.walk(tree):
        for target in targets(node):
            if not isinstance(target, ast.Attribute):
                continue
            if isinstance(target.value, ast.Name) and target.value.id in OWN:
                continue
            name = base(target)
            if isinstance(name, ast.Name):
                direct = isinstance(target.value, ast.Name)
                if (direct and name.id in owners.get(node, ())) or name.id in modules:
                    continue
            yield Write(path, node.lineno, ast.unparse(target))


def count(folder: Path = SOURCE) -> tuple[list[Write], dict[str, int]]:
    """Every write below a folder, and the lines of each package."""
    found: list[Write] = []
    lines: Counter[str] = Counter()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        text = path.read_text("utf-8")
        lines[name.partition("/")[0]] += text.count("\n")
        found += writes(text, name)
    return found, dict(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", default="", help="show every write below this folder")
    asked = parser.parse_args()
    found, lines = count()
    if asked.list:
        for write in found:
            if write.path.startswith(asked.list):
                print(f"{write.path}:{write.line}: {write.text}")
        return
    by_package = Counter(write.path.partition("/")[0] for write in found)
    for name, total in sorted(lines.items()):
        print(f"{name:14} {by_package[name]:5} {by_package[name] / total * 1000:6.1f}")
    whole = sum(lines.values())
    print(f"{'all':14} {len(found):5} {len(found) / whole * 1000:6.1f}  of {whole} lines")


if __name__ == "__main__":
    main()
