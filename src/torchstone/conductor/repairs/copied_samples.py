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
    for call in _in_place(statement):
        assert isinstance(call.func, ast.Attribute)
        name = call.func.attr
        text = f"{file.source(call.func.value)}.{name.removesuffix('_')}{_arguments(file, call)}"
        yield fix([file.replace(call, text)], "change a copy of the sample", "在样本的副本上修改")
    for name in dict.fromkeys(_written(statement)):
        if name not in _assigned(function, statement.lineno):
            continue
        for copy in _COPIES:
            yield fix(
                [file.insert_before(statement.lineno, f"{name} = {name}.{copy}()")],
                "copy the sample before it is changed",
                "修改之前复制样本",
            )


def _in_place(statement: ast.stmt) -> Iterator[ast.Call]:
    """Calls that change what they give on: their result is used, and there is one without the underscore."""
    if (
        not isinstance(statement, ast.Assign | ast.Return | ast.AnnAssign)
        or statement.value is None
    ):
        return
    for node in ast.walk(statement.value):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name.endswith("_") and not name.startswith("_") and len(name) > 1:
                yield node


def _arguments(file: SourceFile, call: ast.Call) -> str:
    """As they are written, with the parentheses."""
    given = [file.source(item) for item in call.args]
    given += [f"{item.arg}={file.source(item.value)}" for item in call.keywords]
    return f"({', '.join(given)})"


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
