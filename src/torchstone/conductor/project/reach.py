"""Who calls what in a project: whether a line runs in every step, and from where it is reached."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from torchstone.conductor.project.gathered import relative
from torchstone.sources.discover import discover
from torchstone.sources.project import parse
from torchstone.sources.source import Source, decode

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TEST_PARTS = frozenset({"test", "tests", "testing", "example", "examples", "benchmarks", "demo"})


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a line stands in the program."""

    scope: str = ""
    callers: int = 0
    """Places that call the function it stands in, by name."""
    every_step: bool = False
    """It stands in a loop with a backward pass, or in a function that such a loop reaches."""
    from_entry: bool = False
    """A script that a person starts reaches it."""
    in_tests: bool = False


@dataclass(slots=True)
class _Function:
    path: str
    name: str
    scope: str
    first: int
    last: int
    calls: set[str] = field(default_factory=set)


@dataclass(slots=True)
class ReachMap:
    """Functions of a project by place, and what they call by name.

    Names are not resolved to objects: two functions of one name count as one. So a line may be
    called reached that is not; the opposite does not happen for calls by name.
    """

    functions: list[_Function] = field(default_factory=list)
    loops: list[tuple[str, int, int]] = field(default_factory=list)
    callers: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    in_steps: set[str] = field(default_factory=set)
    from_entry: set[str] = field(default_factory=set)
    entry_files: set[str] = field(default_factory=set)

    def of(self, path: str, line: int) -> Reach:
        function = self._around(path, line)
        in_loop = any(where == path and first <= line <= last for where, first, last in self.loops)
        names = self._names(function)
        return Reach(
            scope=function.scope if function else "",
            callers=sum(self.callers.get(name, 0) for name in names),
            every_step=in_loop or bool(names & self.in_steps),
            from_entry=path in self.entry_files or bool(names & self.from_entry),
            in_tests=is_test_path(path),
        )

    def lines_of(self, path: str, line: int) -> tuple[int, int]:
        """First and last line of the innermost function around a line; the line itself at top level."""
        function = self._around(path, line)
        return (function.first, function.last) if function else (line, line)

    def _around(self, path: str, line: int) -> _Function | None:
        around = [item for item in self.functions
                  if item.path == path and item.first <= line <= item.last]  # fmt: skip
        return max(around, key=lambda item: item.first, default=None)

    def _names(self, function: _Function | None) -> set[str]:
        if function is None:
            return set()
        # a module's forward is reached by calling the object: its class is what is named
        owner = function.scope.rpartition(".")[0].rpartition(".")[2]
        return {function.name, owner} - {""} if function.name in _BY_CLASS else {function.name}


_BY_CLASS = {"forward", "__call__", "__init__", "__getitem__", "__iter__", "__len__"}


def is_test_path(path: str) -> bool:
    parts = Path(path).parts
    return bool(_TEST_PARTS & set(parts[:-1])) or Path(path).name.startswith(("test_", "conftest"))


def map_reach(root: Path, entry_files: tuple[str, ...]) -> ReachMap:
    """One pass over the project."""
    found = ReachMap(entry_files=set(entry_files))
    stepped: set[str] = set()
    entered: set[str] = set()
    for file in discover([str(root)])[0]:
        data = file.read()
        text = decode(data, file.name) if isinstance(data, bytes) else data
        tree = parse(Source(file.name, text)) if isinstance(text, str) else text
        if not isinstance(tree, ast.Module) or file.name.endswith(".ipynb"):
            continue
        path = relative(file.path, root)
        _note(tree, path, "", found)
        for loop in _loops(tree):
            found.loops.append((path, loop.lineno, loop.end_lineno or loop.lineno))
            stepped |= _called(loop)
        if path in entry_files:
            entered |= _called(tree)
    graph: dict[str, set[str]] = defaultdict(set)
    for function in found.functions:
        for name in found._names(function):
            graph[name] |= function.calls
        for name in function.calls:
            found.callers[name] += 1
    found.in_steps = _closure(stepped, graph)
    found.from_entry = _closure(entered, graph)
    return found


def _note(node: ast.AST, path: str, scope: str, found: ReachMap) -> None:
    for item in ast.iter_child_nodes(node):
        if isinstance(item, (*_FUNCTIONS, ast.ClassDef)):
            inner = f"{scope}.{item.name}" if scope else item.name
            if isinstance(item, _FUNCTIONS):
                found.functions.append(_Function(
                    path, item.name, inner, item.lineno, item.end_lineno or item.lineno, _called(item)
                ))  # fmt: skip
            _note(item, path, inner, found)
        else:
            _note(item, path, scope, found)


def _loops(tree: ast.Module) -> list[ast.For | ast.While]:
    return [
        node for node in ast.walk(tree)
        if isinstance(node, (ast.For, ast.While)) and "backward" in _called(node)
    ]  # fmt: skip


def _called(node: ast.AST) -> set[str]:
    """Names that are called or handed on below a node; attributes by their last name. `self.blocks`
    called as an object is found by the class that built it, which is called elsewhere."""
    names: set[str] = set()
    for item in ast.walk(node):
        if isinstance(item, ast.Call):
            if isinstance(item.func, ast.Name):
                names.add(item.func.id)
            elif isinstance(item.func, ast.Attribute):
                names.add(item.func.attr)
                if isinstance(item.func.value, ast.Name):
                    names.add(item.func.value.id)
    return names


def _closure(start: set[str], graph: dict[str, set[str]]) -> set[str]:
    seen, queue = set(start), list(start)
    while queue:
        for name in graph.get(queue.pop(), ()):
            if name not in seen:
                seen.add(name)
                queue.append(name)
    return seen
