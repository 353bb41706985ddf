"""What is kept from step to step is kept without its graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, called, fix
from torchstone.conductor.repairs._trees import as_operand, nodes_of, scope_at
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("EX104",)
_KEEPING = ("append", "extend", "add", "appendleft")


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    scope = scope_at(file, finding.line)
    for value in _kept(scope):
        text = f"{as_operand(file, value)}.detach()"
        yield fix(
            [file.replace(value, text)], "keep the value without its graph", "保存不带计算图的值"
        )


def _kept(scope: ast.AST) -> Iterator[ast.expr]:
    """Values that outlive the round of a loop: appended, added up, or stored under a key."""
    for node in nodes_of(scope):
        if isinstance(node, ast.Call) and called(node) in _KEEPING and len(node.args) == 1:
            yield node.args[0]
        elif (isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)) or (
            isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
        ):
            yield node.value
