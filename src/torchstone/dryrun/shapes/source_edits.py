"""A fix that was tried by running, as edits of the user's source: the call's line, the layer's line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from torchstone.core.fix import Edit, Fix, Safety
from torchstone.core.lines import split_lines
from torchstone.core.text import Message, Text
from torchstone.dryrun.record import OperatorError, SourceChange, TriedFix

_ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript)
"""Expressions that take a method without parentheses."""
_OPERATORS = {"matmul": ast.MatMult, "__matmul__": ast.MatMult, "add": ast.Add, "sub": ast.Sub,
              "mul": ast.Mult, "div": ast.Div}  # fmt: skip
_FIRST = {"in_features": 0, "in_channels": 0}


def fix_of(error: OperatorError) -> Fix | None:
    """The first fix that worked and can be written down; None where no single place is meant."""
    try:
        text = Path(error.place.path).read_text("utf-8")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None
    for tried in error.fixes:
        if tried.works and (edits := _edits(tried, error, tree, text)):
            says = Message("tried-fix", Text(tried.what_en, tried.what_zh))
            return Fix(edits, Safety.UNSAFE, says, "torchstone dryrun")
    return None


def _edits(tried: TriedFix, error: OperatorError, tree: ast.Module, text: str) -> tuple[Edit, ...]:
    change = tried.source
    edits: list[Edit] = []
    if change.suffix:
        node = _operand(change.argument, error, tree)
        if node is None:
            return ()
        edits.append(_append(node, change.suffix, error.place.path, text))
    if change.layer:
        size = _size(change, error, tree)
        if size is None:
            return ()
        edits.append(_edit(size, str(change.size), error.place.path, text))
    return tuple(edits)


def _operand(argument: int, error: OperatorError, tree: ast.Module) -> ast.expr | None:
    """The expression that was given as this argument, where the line has one such call only."""
    calls = [node for node in ast.walk(tree) if _spans(node, error.place.line)]
    found = [item for node in calls if (item := _given(node, argument, error)) is not None]
    return found[0] if len(found) == 1 else None


def _spans(node: ast.AST, line: int) -> bool:
    first = getattr(node, "lineno", 0)
    return first <= line <= (getattr(node, "end_lineno", 0) or 0) and isinstance(node, ast.expr)


def _given(node: ast.AST, argument: int, error: OperatorError) -> ast.expr | None:
    layer = error.module.rpartition(".")[2]
    name = error.op.rpartition(".")[2]
    if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS.get(name, ast.Pow)):
        return (node.left, node.right)[argument] if argument < 2 else None
    if not isinstance(node, ast.Call):
        return None
    called = _name(node.func)
    if layer and called == layer and _is_of_self(node.func):
        return node.args[argument] if argument < len(node.args) == 1 else None
    if called != name:
        return None
    if isinstance(node.func, ast.Attribute) and not _is_library(node.func.value):
        receiver = (node.func.value, *node.args)
        return receiver[argument] if argument < len(receiver) else None
    return node.args[argument] if argument < len(node.args) else None


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_of_self(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _is_library(node: ast.expr) -> bool:
    """`torch.matmul`, `F.cross_entropy`: the receiver is no operand."""
    return _name(node) in ("torch", "F", "functional", "nn")


def _size(change: SourceChange, error: OperatorError, tree: ast.Module) -> ast.expr | None:
    """The layer's size where the layer is built: `self.NAME = nn.Linear(SIZE, ...)`."""
    layer = error.module.rpartition(".")[2]
    found = [
        size for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets if _is_of_self(target) and _name(target) == layer
        for size in _argument(node.value, change.layer)
    ]  # fmt: skip
    return found[0] if layer and not layer.isdigit() and len(found) == 1 else None


def _argument(call: ast.Call, name: str) -> Iterator[ast.expr]:
    if len(call.args) > _FIRST[name]:
        yield call.args[_FIRST[name]]
    yield from (item.value for item in call.keywords if item.arg == name)


def _append(node: ast.expr, suffix: str, path: str, text: str) -> Edit:
    segment = ast.get_source_segment(text, node) or ""
    whole = segment if isinstance(node, _ATOMS) else f"({segment})"
    return _edit(node, whole + suffix, path, text)


def _edit(node: ast.expr, new: str, path: str, text: str) -> Edit:
    """Columns of the syntax tree count bytes, those of an edit count characters."""
    lines = split_lines(text)
    end = node.end_lineno or node.lineno

    def column(line: int, offset: int) -> int:
        return len(lines[line - 1].encode("utf-8")[:offset].decode("utf-8", "replace"))

    return Edit(path, node.lineno, column(node.lineno, node.col_offset), end,
                column(end, node.end_col_offset or 0), new)  # fmt: skip
