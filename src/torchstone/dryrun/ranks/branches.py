"""The branch in the user's source that sends ranks different ways."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from torchstone.core.place import Place

_BRANCHES = (ast.If, ast.While, ast.For, ast.Try, ast.IfExp, ast.ExceptHandler)


@functools.lru_cache(maxsize=64)
def _tree(path: str) -> ast.Module | None:
    try:
        return ast.parse(Path(path).read_text("utf-8", "replace"))
    except (OSError, SyntaxError, ValueError):
        return None


def find_branch(ours: tuple[Place, ...], theirs: tuple[Place, ...]) -> tuple[Place, str]:
    """The innermost branch around the first line where two stacks part, and its condition."""
    for mine, other in _parting(ours, theirs) if theirs else ():
        found = _around(mine, other) or _around(other, mine)
        if found is not None:
            return found
    for place in ours:  # no common caller: the nearest branch that speaks of a rank
        found = _around(place, Place())
        if found is not None:
            return found
    return Place(), ""


def _parting(ours: tuple[Place, ...], theirs: tuple[Place, ...]) -> list[tuple[Place, Place]]:
    """From the outermost frame inwards: the first pair of lines that differ, then the rest."""
    outer = list(zip(reversed(ours), reversed(theirs), strict=False))
    for index, (mine, other) in enumerate(outer):
        if mine != other:
            return outer[index : index + 1]
    if len(ours) != len(theirs):
        longer = ours if len(ours) > len(theirs) else theirs
        inner = longer[len(longer) - min(len(ours), len(theirs)) - 1]
        return [(inner, Place())]
    return []


def _around(place: Place, outside: Place) -> tuple[Place, str] | None:
    """The innermost `if` or loop that holds one line in a part that does not hold the other."""
    tree = _tree(place.path)
    if tree is None:
        return None
    best: ast.AST | None = None
    for node in ast.walk(tree):
        if not isinstance(node, _BRANCHES):
            continue
        part = _part_of(node, place.line)
        if part is None:
            continue
        same = outside.path == place.path and _part_of(node, outside.line) == part
        if not same and (best is None or node.lineno >= best.lineno):  # type: ignore[attr-defined]
            best = node
    if best is None:
        return _early_leave(tree, place, outside)
    line = best.lineno  # type: ignore[attr-defined]
    return Place(place.path, line, place.scope), _condition(best)


def _part_of(node: ast.AST, line: int) -> str | None:
    """Which part of a branch a line is in: its body, its else, a handler."""
    for name in ("body", "orelse", "handlers", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            if block[0].lineno <= line <= (block[-1].end_lineno or block[-1].lineno):
                return name
    return None


def _early_leave(tree: ast.Module, place: Place, outside: Place) -> tuple[Place, str] | None:
    """A `return`, `continue`, `break` or `raise` under a condition between the two lines."""
    if outside.path != place.path or not outside.line:
        return None
    first, last = sorted((place.line, outside.line))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and first <= node.lineno <= last and _leaves(node):
            return Place(place.path, node.lineno, place.scope), _condition(node)
    return None


def _leaves(node: ast.If) -> bool:
    leave = (ast.Return, ast.Continue, ast.Break, ast.Raise)
    return any(isinstance(item, leave) for item in ast.walk(node))


def _condition(node: ast.AST) -> str:
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        return f"{'while' if isinstance(node, ast.While) else 'if'} {ast.unparse(node.test)}"
    if isinstance(node, ast.For):
        return f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
    return "try" if isinstance(node, ast.Try) else "except"
