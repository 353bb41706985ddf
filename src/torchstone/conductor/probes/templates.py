"""Edits at the lines that a probe points to: found in the syntax tree, never by a pattern of text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

from torchstone.core.fix import Edit, Fix, Safety
from torchstone.core.place import Place
from torchstone.core.text import Message, Text

Function = ast.FunctionDef | ast.AsyncFunctionDef


class SourceFile:
    """One file of the project, parsed."""

    def __init__(self, root: Path, path: str) -> None:
        self.path, self.home = path, root
        self.text = (root / path).read_text("utf-8")
        self.lines = self.text.splitlines()
        self.tree = ast.parse(self.text)

    def statement(self, line: int) -> ast.stmt | None:
        """The smallest statement that covers a line."""
        found = [item for item in ast.walk(self.tree) if isinstance(item, ast.stmt)
                 and item.lineno <= line <= (item.end_lineno or item.lineno)]  # fmt: skip
        return max(found, key=lambda item: (item.lineno, -(item.end_lineno or 0)), default=None)

    def function(self, line: int) -> Function | None:
        """The innermost function around a line, its decorators included."""
        found = [
            item
            for item in ast.walk(self.tree)
            if isinstance(item, Function) and _first_line(item) <= line <= (item.end_lineno or 0)
        ]
        return max(found, key=lambda item: item.lineno, default=None)

    def nodes(self, line: int, kind: type[ast.expr]) -> list[ast.expr]:
        """Expressions of a kind in the statement at a line, the outermost first."""
        statement = self.statement(line)
        if statement is None:
            return []
        heads = [statement] if not hasattr(statement, "body") else list(_heads(statement))
        return [node for head in heads for node in ast.walk(head) if isinstance(node, kind)]

    def calls(self, line: int, *names: str) -> list[ast.Call]:
        """Calls of functions or methods with these names in the statement at a line."""
        return [node for node in self.nodes(line, ast.Call)
                if isinstance(node, ast.Call) and called(node) in names]  # fmt: skip

    def source(self, node: ast.AST) -> str:
        return ast.get_source_segment(self.text, node) or ""

    def indent(self, line: int) -> str:
        text = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip())]

    def replace(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        return Edit(self.path, node.lineno, self._column(node.lineno, node.col_offset),
                    node.end_lineno or node.lineno,
                    self._column(node.end_lineno or node.lineno, node.end_col_offset or 0), text)  # fmt: skip

    def insert_before(self, line: int, text: str) -> Edit:
        """A line of its own before a line, as deep as that."""
        return Edit(self.path, line, 0, line, 0, f"{self.indent(line)}{text}\n")

    def insert_after(self, node: ast.stmt, text: str) -> Edit:
        end = (node.end_lineno or node.lineno) + 1
        return Edit(self.path, end, 0, end, 0, f"{self.indent(node.lineno)}{text}\n")

    def delete(self, node: ast.stmt) -> Edit:
        return Edit(self.path, node.lineno, 0, (node.end_lineno or node.lineno) + 1, 0, "")

    def whole(self, node: ast.stmt) -> str:
        """A statement with its line ends and depth."""
        return "".join(f"{row}\n" for row in self.lines[node.lineno - 1 : node.end_lineno])

    def _column(self, line: int, offset: int) -> int:
        """Columns of the tree count bytes, those of edits characters."""
        return len(self.lines[line - 1].encode()[:offset].decode("utf-8", "replace"))


def _first_line(function: Function) -> int:
    return min([function.lineno, *(item.lineno for item in function.decorator_list)])


def _heads(statement: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a compound statement outside its body."""
    for name, value in ast.iter_fields(statement):
        if name not in ("body", "orelse", "finalbody", "handlers", "decorator_list"):
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, ast.AST):
                    yield item


def called(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def parsed(root: Path, place: Place) -> SourceFile | None:
    try:
        return SourceFile(root, place.path)
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None


def fix(edits: tuple[Edit, ...] | list[Edit], en: str, zh: str) -> Fix:
    return Fix(tuple(edits), Safety.UNSAFE, Message("probe-fix", Text(en, zh)))


def offered(
    root: Path, place: Place, *makers: Callable[[SourceFile, Place], Iterator[Fix]]
) -> tuple[Fix, ...]:
    """All edits that some templates have for a line."""
    file = parsed(root, place)
    if file is None or not place.line:
        return ()
    return tuple(found for maker in makers for found in maker(file, place))
