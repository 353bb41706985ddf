"""Questions about a candidate's syntax tree that several rules of the policy ask."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchstone.core.text import Text

_DEEPEST = 8
"""Dots in a path: `f = f.g` would go on for ever, and no member lies deeper."""

MOST_MEANINGS = 16
"""One name for more things than this is refused: their number would double with every assignment."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why the policy refuses something, and what to do instead."""

    why: Text
    remedy: Text


@dataclass(frozen=True, slots=True)
class Breach:
    """One thing that the policy refuses."""

    line: int
    what: Text
    reason: Reason | None = None


def breach(node: ast.AST, en: str, zh: str) -> Breach:
    return Breach(getattr(node, "lineno", 0), Text(en, zh))


def homes_of(tree: ast.Module) -> dict[str, str]:
    """What every imported name stands for, with its full path; names given to one later, too."""
    return {name: found[-1][0] for name, found in meanings_of(tree).items()}


Meanings = dict[str, list[tuple[str, int]]]
"""Of every name the paths that it stands for somewhere in the file, each with its line."""


def meanings_of(tree: ast.Module) -> Meanings:
    """All that an imported name stands for: in one function it may be another thing than elsewhere."""
    found: Meanings = {}
    given: list[ast.Assign | ast.NamedExpr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                name = item.asname or item.name.partition(".")[0]
                _means(found, name, item.name if item.asname else name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            for item in node.names:
                path = f"{node.module or ''}.{item.name}"
                _means(found, item.asname or item.name, path, node.lineno)
        elif isinstance(node, ast.Assign | ast.NamedExpr):
            given.append(node)
    changed = True
    while changed:  # a name of a name of a name: the walk meets the last one first where it likes
        changed = max([_named_again(node, found) for node in given], default=0) > 0
    return found


def _means(found: Meanings, name: str, path: str, line: int) -> bool:
    """Note a meaning; whether it is new."""
    known = found.setdefault(name, [])
    new = path.count(".") <= _DEEPEST and all(path != other for other, _ in known)
    if not new or len(known) == MOST_MEANINGS:
        return False
    known.append((path, line))
    return True


def _named_again(node: ast.Assign | ast.NamedExpr, found: Meanings) -> int:
    """How many new meanings an assignment gives to names."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [item.id for item in targets if isinstance(item, ast.Name)]
    parts: list[str] = []
    at: ast.expr = node.value
    while isinstance(at, ast.Attribute):
        parts.insert(0, at.attr)
        at = at.value
    if not isinstance(at, ast.Name) or not names:
        return 0
    paths = [".".join([path, *parts]) for path, _ in found.get(at.id, [])]
    return sum(_means(found, name, path, node.lineno) for name in names for path in paths)


def path_of(node: ast.Attribute, homes: dict[str, str]) -> str:
    """The full path of an attribute of something imported; empty for other attributes."""
    parts: list[str] = []
    at: ast.expr = node
    while isinstance(at, ast.Attribute):
        parts.append(at.attr)
        at = at.value
    if not isinstance(at, ast.Name) or at.id not in homes:
        return ""
    return ".".join([homes[at.id], *reversed(parts)])


def root_of(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
