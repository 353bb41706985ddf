"""An operator gets values for which it is finite."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.templates import SourceFile, called, fix
from torchstone.conductor.repairs._trees import as_operand
from torchstone.core.finding import Finding
from torchstone.core.fix import Fix

RULES = ("EX101",)
_SMALL = "1e-6"
"""Above the smallest step of float32 around one, far below values that matter."""
_OF_ZERO = ("log", "log2", "log10", "rsqrt", "reciprocal", "sqrt", "log_")


def edits(file: SourceFile, finding: Finding) -> Iterator[Fix]:
    for node in file.nodes(finding.line, ast.Call):
        assert isinstance(node, ast.Call)
        if called(node) not in _OF_ZERO or not isinstance(node.func, ast.Attribute):
            continue
        value = node.args[0] if node.args else node.func.value
        text = f"{as_operand(file, value)}.clamp_min({_SMALL})"
        yield fix([file.replace(value, text)], "keep the argument above zero", "使参数大于零")
    for node in file.nodes(finding.line, ast.BinOp):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            right = file.source(node.right)
            if not isinstance(node.right, ast.Constant):
                edit = file.replace(node.right, f"({right} + {_SMALL})")
                yield fix([edit], "keep the divisor away from zero", "使除数不为零")
