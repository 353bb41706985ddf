"""Lines of `assert`: what a program asserts of values is taken as it says."""

from __future__ import annotations

import ast
import functools
import linecache

from torchstone.core.place import Place
from torchstone.observe.where import PROGRAM


def asserted_value(spot: Place) -> bool | None:
    """The answer for which the `assert` on this line passes; None where there is none."""
    return _assertions(PROGRAM.file_of(spot)).get(spot.line) if spot else None


@functools.cache
def _assertions(path: str) -> dict[int, bool]:
    """Lines of assertions; False for `assert not ...`."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return {}
    found: dict[int, bool] = {}
    unclear: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            negated = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                if found.setdefault(line, not negated) is negated:
                    unclear.add(line)  # two on one line ask for different answers
    return {line: value for line, value in found.items() if line not in unclear}
