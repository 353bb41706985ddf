"""A file as it is written: the text of a node, and edits that keep everything around it."""

from __future__ import annotations

import ast
import functools

from torchstone.core.fix import Edit
from torchstone.core.lines import split_lines
from torchstone.sources.source import Source


class Writing:
    """Lines, spans and edits of one source. Lines count from 1, columns from 0, in characters."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.path = source.path

    @functools.cached_property
    def lines(self) -> list[str]:
        """The file's lines with their endings."""
        return split_lines(self.source.text)

    def _column(self, line: int, offset: int) -> int:
        """Characters, where `ast` counts UTF-8 bytes."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))

    def span(self, node: ast.AST) -> tuple[int, int, int, int]:
        """First line, column, last line, column; lines from 1, columns from 0, in characters."""
        line, end = getattr(node, "lineno", 1), getattr(node, "end_lineno", None) or 1
        return (
            line,
            self._column(line, getattr(node, "col_offset", 0)),
            end,
            self._column(end, getattr(node, "end_col_offset", None) or 0),
        )

    def text(self, node: ast.AST) -> str:
        """The node as it is written."""
        line, column, end_line, end_column = self.span(node)
        if line == end_line:
            return self.lines[line - 1][column:end_column]
        middle = self.lines[line : end_line - 1]
        return "".join(
            (self.lines[line - 1][column:], *middle, self.lines[end_line - 1][:end_column])
        )

    def brief(self, node: ast.AST, width: int = 48) -> str:
        """The node on one line, shortened in the middle, for messages."""
        text = " ".join(self.text(node).split())
        return text if len(text) <= width else text[: width - 12] + " … " + text[-9:]

    def edit(self, line: int, column: int, end_line: int, end_column: int, text: str) -> Edit:
        cell, first = self.source.place(line)
        return Edit(self.path, first, column, first + end_line - line, end_column, text, cell)

    def replace(self, node: ast.AST, text: str) -> Edit:
        """Put text where a node stands."""
        return self.edit(*self.span(node), text)

    def replace_between(self, start: ast.AST, end: ast.AST, text: str) -> Edit:
        """Put text between the end of one node and the end of a later one."""
        _, _, line, column = self.span(start)
        _, _, end_line, end_column = self.span(end)
        return self.edit(line, column, end_line, end_column, text)

    def insert_before(self, node: ast.AST, text: str) -> Edit:
        line, column, _, _ = self.span(node)
        return self.edit(line, column, line, column, text)

    def insert_after(self, node: ast.AST, text: str) -> Edit:
        _, _, line, column = self.span(node)
        return self.edit(line, column, line, column, text)

    def insert_line_before(self, statement: ast.stmt, text: str) -> Edit:
        """A new line with the statement's own indentation, before it."""
        line, column, _, _ = self.span(statement)
        indent = self.lines[line - 1][:column]
        return self.edit(line, 0, line, 0, f"{indent}{text}{self._ending(line)}")

    def insert_line_after(self, statement: ast.stmt, text: str) -> Edit:
        """A new line with the statement's own indentation, after it."""
        line, column, end_line, _ = self.span(statement)
        indent = self.lines[line - 1][:column]
        length = len(self.lines[end_line - 1].rstrip("\r\n"))
        return self.edit(end_line, length, end_line, length, f"{self._ending(line)}{indent}{text}")

    def _ending(self, line: int) -> str:
        body = self.lines[line - 1]
        return body[len(body.rstrip("\r\n")) :] or "\n"

    def add_keyword(self, call: ast.Call, text: str) -> Edit:
        """Add `name=value` at the end of a call's arguments, keeping a trailing comma's style."""
        _, _, end_line, end_column = self.span(call)
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not arguments:
            return self.edit(end_line, end_column - 1, end_line, end_column - 1, text)
        last = max(arguments, key=lambda item: (item.end_lineno or 0, item.end_col_offset or 0))
        _, _, line, column = self.span(last)
        line, column = self._past_brackets(line, column, end_line, end_column - 1)
        return self.edit(line, column, line, column, f", {text}")

    def _past_brackets(self, line: int, column: int, end_line: int, end: int) -> tuple[int, int]:
        """Behind the brackets that close around an argument, as in `f((x))`."""
        at_line, at = line, column
        while (at_line, at) < (end_line, end):
            row = self.lines[at_line - 1]
            if at >= len(row.rstrip("\r\n")) or row[at] == "#":
                at_line, at = at_line + 1, 0
                continue
            if row[at] == ")":
                line, column = at_line, at + 1
            elif not row[at].isspace():
                break
            at += 1
        return line, column
