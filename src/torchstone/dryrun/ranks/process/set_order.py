"""Sets of strings have an order of their own in every process; ranks that are copies of one do not.

Python hashes strings with a seed per process. Loops of the user's code over sets are given an order by the rank.
"""

from __future__ import annotations

import ast
import builtins
import sys
import zlib
from typing import Any

from torchstone.dryrun.script.patches import put
from torchstone.observe.where import PROGRAM

_NAME = "__torchstone_order_of_rank__"
_READERS = frozenset(("list", "tuple", "iter", "enumerate", "zip", "map", "dict"))
"""Functions that read what they are given in its order."""


def order_sets_by_rank(rank: int, scratch: str) -> None:
    """From now on code that is compiled goes through sets of strings in an order of this rank."""
    real_compile = builtins.compile

    def in_order(value: Any) -> Any:
        if type(value) not in (set, frozenset) or not any(isinstance(item, str) for item in value):
            return value
        order = sorted(value, key=lambda item: zlib.crc32(repr(item).encode()))
        first = rank % len(order)  # two ranks side by side agree on no place, where chance may
        return [*order[first:], *order[:first]]

    def compile_in_order(source: Any, filename: Any, mode: str, *rest: Any, **options: Any) -> Any:
        own = mode == "exec" and isinstance(filename, str) and PROGRAM.is_own(filename)
        if own and isinstance(source, (str, bytes)):
            tree = real_compile(source, filename, mode, ast.PyCF_ONLY_AST)
            source = ast.fix_missing_locations(_Orders().visit(tree))
        return real_compile(source, filename, mode, *rest, **options)

    setattr(builtins, _NAME, in_order)
    put(builtins, "compile", compile_in_order)
    if scratch:
        sys.pycache_prefix = f"{scratch}/pycache"  # what was compiled before does not ask


class _Orders(ast.NodeTransformer):
    """Wraps what a loop goes through, and what is made into a list."""

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = _ordered(node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.iter = _ordered(node.iter)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _READERS:
            node.args = [
                item if isinstance(item, ast.Starred) else _ordered(item) for item in node.args
            ]
        return node


def _ordered(value: ast.expr) -> ast.expr:
    call = ast.Call(ast.Name(_NAME, ast.Load()), [value], [])
    return ast.copy_location(call, value)
