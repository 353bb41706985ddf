"""A column and a row of one length get the same shape."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, fix
from torchstone.conductor.repairs._trees import as_operand
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("EX106",)


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    said = dict(finding.what.args)
    left_is_column = len(str(said.get("left", "")).split(",")) > len(
        [part for part in str(said.get("right", "")).split(",") if part.strip(" ()[]")]
    )
    pairs = [
        (node.left, node.right)
        for node in file.nodes(finding.line, ast.BinOp)
        if isinstance(node, ast.BinOp)
    ]
    pairs += [
        (node.args[0], node.args[1])
        for node in file.nodes(finding.line, ast.Call)
        if isinstance(node, ast.Call) and len(node.args) > 1
    ]
    pairs += [
        (node.func.value, node.args[0])
        for node in file.nodes(finding.line, ast.Call)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args
    ]
    for left, right in pairs:
        column, row = (left, right) if left_is_column else (right, left)
        for operand, ending, other in (
            (column, ".squeeze(-1)", row),
            (row, ".unsqueeze(-1)", column),
        ):
            if isinstance(operand, ast.Constant) or isinstance(other, ast.Constant):
                continue
            yield fix(
                [file.replace(operand, f"{as_operand(file, operand)}{ending}")],
                "give both the same shape",
                "使两者形状一致",
            )
