"""What several repairs ask of a syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import Function, SourceFile, called
from torchstone.core.fix import Edit

Loop = ast.For | ast.AsyncFor


def nodes_of(function: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a function, without those of functions inside of it."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from nodes_of(node)


def scope_at(file: SourceFile, line: int) -> Function | ast.Module:
    """The function around a line, else the file."""
    return file.function(line) or file.tree


def statements_that_call(scope: ast.AST, name: str) -> Iterator[tuple[ast.Expr, ast.Call]]:
    """Statements that are a call of a method of this name, in the order of the text."""
    for node in nodes_of(scope):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and called(node.value) == name
        ):
            yield node, node.value


def owner_of(file: SourceFile, call: ast.Call) -> str:
    """The object whose method is called, as it is written."""
    return file.source(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def loops_around(scope: ast.AST, node: ast.AST) -> list[ast.For | ast.AsyncFor | ast.While]:
    """Loops of a scope that hold a node, the outermost first."""
    found = [
        item
        for item in nodes_of(scope)
        if isinstance(item, ast.For | ast.AsyncFor | ast.While)
        and any(inner is node for inner in ast.walk(item))
    ]
    return sorted(found, key=lambda item: item.lineno)


def block_of(scope: ast.AST, statement: ast.stmt) -> list[ast.stmt]:
    """The statements that one stands among."""
    for node in (scope, *nodes_of(scope)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and any(item is statement for item in block):
                return block
    return []


def remove(file: SourceFile, scope: ast.AST, statement: ast.stmt) -> Edit:
    """Take a statement away; one that stands alone in its block becomes `pass`."""
    if len(block_of(scope, statement)) > 1:
        return file.delete(statement)
    return file.replace(statement, "pass")


def samples_in(file: SourceFile, loop: Loop) -> str:
    """How many samples the batch of one round of a loop has, as code; empty where that cannot be read."""
    target = loop.target
    if (
        isinstance(loop.iter, ast.Call)
        and called(loop.iter) == "enumerate"
        and isinstance(target, ast.Tuple)
    ):
        target = target.elts[-1]
    first = _first_name(target)
    if isinstance(target, ast.Tuple | ast.List):
        return f"len({first})" if first else ""
    for node in (item for part in loop.body for item in ast.walk(part)):
        if isinstance(node, ast.Assign) and file.source(node.value) == first:
            unpacked = node.targets[0]
            if isinstance(unpacked, ast.Tuple) and (name := _first_name(unpacked)):
                return f"len({name})"
        if (
            isinstance(node, ast.Subscript)
            and file.source(node.value) == first
            and isinstance(node.slice, ast.Constant)
        ):
            return f"len({file.source(node)})"
    return f"len({first})" if first else ""


def _first_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Tuple | ast.List):
        return next(filter(None, map(_first_name, node.elts)), "")
    return ""


def as_operand(file: SourceFile, node: ast.expr) -> str:
    """The text of an expression, in parentheses where something else binds closer."""
    closed = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.Constant)
    return file.source(node) if closed else f"({file.source(node)})"


def with_import(file: SourceFile, module: str) -> tuple[Edit, ...]:
    """`import MODULE` behind the imports of a file, where it is not there."""
    imports = [node for node in file.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if any(
        alias.name == module and alias.asname is None
        for node in imports
        if isinstance(node, ast.Import)
        for alias in node.names
    ):
        return ()
    later = [
        node
        for node in imports
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
    ]
    if later:
        return (file.insert_before(later[0].lineno, f"import {module}"),)
    last = imports[-1] if imports else None
    return (file.insert_after(last, f"import {module}"),) if last else ()
