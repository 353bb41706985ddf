"""A function of a script as a candidate: the function, what it needs from the file, and nothing else that runs.

Kernels are often written in files that also test and time them. Of such a file the statements are kept that the
named function depends on, each at its own line; the rest is left out, never run.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from torchstone.core.errors import InputError
from torchstone.core.text import Text

_WRAPPED = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, *inputs):
        return {name}(*inputs)
"""


def split_function(word: str) -> tuple[Path, str]:
    """A path, and the name of a function after a colon; empty where none is named."""
    path, colon, name = word.rpartition(":")
    if colon and name.isidentifier() and not Path(word).exists():
        return Path(path), name
    return Path(word), ""


def function_as_candidate(source: str, name: str, where: str) -> str:
    """The source of a candidate that calls one function of a script."""
    source = _without_environment(source)
    body = ast.parse(source).body
    statements = [_Statement.read(node) for node in body]
    wanted = [number for number, item in enumerate(statements) if name in item.binds]
    if not wanted:
        known = [item for statement in statements for item in statement.functions]
        names = ", ".join(known) or "none"
        raise InputError(
            f"kernel verify {where}", Text(f"no function {name!r}", f"没有函数 {name!r}"),
            Text(f"one that the file defines ({names})", f"文件中定义的函数（{names}）"),
            Text("name one of them: FILE.py:FUNCTION", "请写出其中一个：FILE.py:函数名"),
        )  # fmt: skip
    kept = _needed(statements, wanted[-1:])
    left = _without(source, [node for number, node in enumerate(body) if number not in kept])
    return left + "\n\n" + _WRAPPED.format(name=name)


def without_candidate(source: str, name: str, problem: Collection[str]) -> str:
    """The source of a problem that stands in a file with a candidate of this name: what only the candidate needs is
    left out, its language above all, and what cannot run without that."""
    body = ast.parse(source).body
    statements = [_Statement.read(node) for node in body]
    mine, others = (
        _needed(statements, [n for n, item in enumerate(statements) if item.binds & names])
        for names in ({name}, set(problem))
    )
    left_out = mine - others
    while more := _lacking(statements, left_out) - others:
        left_out |= more
    return _without(source, [body[number] for number in left_out])


def _lacking(statements: list[_Statement], left_out: set[int]) -> set[int]:
    """Other statements that read a name that nothing else binds."""
    gone, there = (
        {name for n, item in enumerate(statements) if (n in left_out) is out for name in item.binds}
        for out in (True, False)
    )
    lost = gone - there
    return {
        number
        for number, item in enumerate(statements)
        if number not in left_out and (item.reads | item.reads_later) & lost
    }


def _without(source: str, nodes: Iterable[ast.stmt]) -> str:
    """The source without these statements, every other line at its own number."""
    lines = source.split("\n")
    for node in nodes:
        for row in range(_first_line(node) - 1, node.end_lineno or node.lineno):
            lines[row] = ""
    return "\n".join(lines)


def _without_environment(source: str) -> str:
    """The source with an empty mapping for `os.environ`: what a process was started with is no input of a kernel."""
    lines = [line.encode() for line in source.split("\n")]
    asked = [
        node for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "os.environ" and node.lineno == node.end_lineno
    ]  # fmt: skip
    for node in sorted(asked, key=lambda node: (node.lineno, -node.col_offset)):
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[: node.col_offset] + b"{}" + line[node.end_col_offset :]
    return "\n".join(line.decode() for line in lines)


def _first_line(node: ast.stmt) -> int:
    above = [item.lineno for item in getattr(node, "decorator_list", ())]
    return int(min([node.lineno, *above]))


@dataclass(slots=True)
class _Statement:
    """A statement at the top of a file: the names it binds, and those it reads."""

    binds: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    """When the statement runs."""
    reads_later: set[str] = field(default_factory=set)
    """When a function that it defines is called."""
    functions: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, node: ast.stmt) -> _Statement:
        found = cls()
        if isinstance(node, ast.FunctionDef):
            found.functions.append(node.name)
        found._walk(node)
        return found

    def _walk(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            (self.reads if isinstance(node.ctx, ast.Load) else self.binds).add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.binds |= {(item.asname or item.name).partition(".")[0] for item in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.binds.add(node.name)
        body = _body_of(node)
        self.reads_later |= _free_names(node, body)
        inside = set(map(id, body))
        for child in ast.iter_child_nodes(node):
            if id(child) not in inside:
                self._walk(child)


def _body_of(node: ast.AST) -> list[ast.AST]:
    """What only runs when a function is called; nothing for other nodes."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    return [*node.body] if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []


def _free_names(function: ast.AST, body: list[ast.AST]) -> set[str]:
    """Names that a function takes from outside: read in it, and not its own."""
    inside = _Statement()
    for node in body:
        inside._walk(node)
    arguments = getattr(function, "args", None) if body else None
    own = (
        {item.arg for item in ast.walk(arguments) if isinstance(item, ast.arg)}
        if arguments
        else set()
    )
    return (inside.reads | inside.reads_later) - inside.binds - own


def _needed(statements: list[_Statement], wanted: list[int]) -> set[int]:
    """The statements on which these depend. What a function reads may be bound after it."""
    binders: defaultdict[str, list[int]] = defaultdict(list)
    for number, item in enumerate(statements):
        for name in item.binds:
            binders[name].append(number)
    kept: set[int] = set()
    waiting = list(wanted)
    while waiting:
        number = waiting.pop()
        if number in kept:
            continue
        kept.add(number)
        item = statements[number]
        waiting += [other for name in item.reads for other in binders[name] if other < number]
        waiting += [other for name in item.reads_later for other in binders[name]]
    return kept
