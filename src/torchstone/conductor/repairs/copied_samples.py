"""A sample is copied before it is changed in place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, fix
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("EX121",)
_COPIES = ("clone", "copy")
"""Of a tensor, and of an array."""


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    statement = file.statement(finding.line)
    function = file.function(finding.line)
    if statement is None or function is None:
        return
    for name in dict.fromkeys(_written(statement)):
        if name not in _assigned(function, statement.lineno):
            continue
        for copy in _COPIES:
            yield fix(
                [file.insert_before(statement.lineno, f"{name} = {name}.{copy}()")],
                "copy the sample before it is changed",
                "修改之前复制样本",
            )


def _written(statement: ast.stmt) -> Iterator[str]:
    """Names whose value a statement changes in place."""
    if isinstance(statement, ast.AugAssign):
        yield from _root(statement.target)
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Subscript):
                yield from _root(target)
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
                yield from _root(node.func.value)
            for item in node.keywords:
                if item.arg == "out":
                    yield from _root(item.value)
            for argument in node.args[:1]:
                yield from _root(argument)


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Name):
        yield node.id


def _assigned(function: ast.AST, line: int) -> set[str]:
    """Names that a function sets before a line: what is copied is one of its own."""
    return {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and node.lineno < line
        for whole in node.targets
        for target in ast.walk(whole)
        if isinstance(target, ast.Name)
    }
