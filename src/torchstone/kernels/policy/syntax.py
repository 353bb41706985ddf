"""Questions about a candidate's syntax tree that several rules of the policy ask."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchstone.core.text import Text

_MOST_RENAMINGS = 3
"""A name of a name of a name: kernels do not go further."""


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
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                name = item.asname or item.name.partition(".")[0]
                found[name] = item.name if item.asname else name
        elif isinstance(node, ast.ImportFrom):
            for item in node.names:
                found[item.asname or item.name] = f"{node.module or ''}.{item.name}"
    for _ in range(_MOST_RENAMINGS):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.NamedExpr) and (path := _path(node.value, found)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {item.id: path for item in targets if isinstance(item, ast.Name)}
    return found


def _path(node: ast.expr, homes: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return homes.get(node.id, "")
    return path_of(node, homes) if isinstance(node, ast.Attribute) else ""


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
