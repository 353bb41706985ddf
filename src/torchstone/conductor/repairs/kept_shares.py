"""The two shares of an average are exchanged."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, called, fix
from torchstone.core.finding import Finding
from torchstone.core.fix import Edit, Fix

RULES = ("EX127", "EX108")


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    function = file.function(finding.line)
    if function is None:
        return
    names = {
        file.source(node)
        for node in ast.walk(function)
        if isinstance(node, ast.Name | ast.Attribute)
    }
    for name in sorted(names):
        pairs = [(node, _rest(file, node)) for node in ast.walk(function)]
        rests = [node for node, rest in pairs if rest == name]
        inside = {id(part) for node in rests for part in ast.walk(node)}
        plain = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Name | ast.Attribute)
            and file.source(node) == name
            and id(node) not in inside
            and isinstance(node.ctx, ast.Load)
        ]
        changes: list[Edit] = [
            file.replace(node, name) for node in rests if isinstance(node, ast.expr)
        ]
        if rests and plain:
            changes += [file.replace(node, f"(1 - {name})") for node in plain]
            yield fix(changes, "exchange the two shares", "交换两个份额")
        elif plain and _weight_of_lerp(function, name, file):
            changes = [file.replace(node, f"1 - {name}") for node in plain]
            yield fix(changes, "move by the other share", "按另一份额移动")


def _rest(file: SourceFile, node: ast.AST) -> str:
    """X of `1 - X`."""
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and isinstance(node.left, ast.Constant)
        and node.left.value == 1
    ):
        return file.source(node.right)
    return ""


def _weight_of_lerp(function: ast.AST, name: str, file: SourceFile) -> bool:
    return any(
        isinstance(node, ast.Call)
        and called(node) in ("lerp", "lerp_")
        and any(
            file.source(item) == name for item in (*node.args, *(k.value for k in node.keywords))
        )
        for node in ast.walk(function)
    )
