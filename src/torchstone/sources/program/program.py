"""A project as one program: the question of other packages are answered here."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from torchstone.sources.discover import File
from torchstone.sources.program.flow import Edge, Flow
from torchstone.sources.program.names import Names
from torchstone.sources.program.outline import Function, Key, Outline
from torchstone.sources.program.reading import outline_of
from torchstone.sources.program.steps import Steps, find_steps, reachable
from torchstone.sources.project import Project, parse
from torchstone.sources.source import Source, decode


@dataclass(frozen=True)
class Program:
    """The files of a project and the calls between them."""

    outlines: Mapping[str, Outline]
    edges: tuple[Edge, ...]
    unread: tuple[str, ...] = ()
    """Files that could not be parsed."""

    def function_at(self, path: str, line: int) -> Function | None:
        """The innermost function around a line; None at the top level."""
        outline = self.outlines.get(path)
        if outline is None:
            return None
        around = [
            item
            for scope, item in outline.functions.items()
            if scope and item.first <= line <= item.last
        ]
        return max(around, key=lambda item: item.first, default=None)

    def is_test(self, path: str) -> bool:
        """Whether a file is a test, by its own name or by what it imports."""
        outline = self.outlines.get(path)
        return outline is not None and outline.is_test

    def callers_of(self, key: Key) -> int:
        """Places that call a function."""
        return self._callers.get(key, 0)

    def line_of(self, edge: Edge) -> int:
        """The line of a call; the first one of the caller for what runs without a call."""
        function = self._functions[edge.caller]
        return function.sites[edge.site].line if edge.site >= 0 else function.first

    def first_line(self, key: Key) -> int:
        """Where a function begins; 0 for what is not of the project."""
        return self._functions[key].first if key in self._functions else 0

    def runs_in_every_step(self, path: str, line: int) -> bool:
        """Whether a line is part of a training step."""
        function = self.function_at(path, line)
        if function is not None and function.key in self.steps.functions:
            return True
        home = function.key if function is not None else Key(path, "")
        return any(
            loop.function == home
            and loop.first <= line <= loop.last
            and not self._is_seldom(home, line)
            for loop in self.steps.loops
        )

    def _is_seldom(self, key: Key, line: int) -> bool:
        """Whether every call of the line runs only now and then."""
        sites = [s for s in self.outlines[key.path].functions[key.scope].sites if s.line == line]
        return bool(sites) and all(site.seldom for site in sites)

    def reached_from(self, paths: Iterable[str]) -> frozenset[Key]:
        """The functions and the top levels that run when these files are started."""
        start = {Key(path, "") for path in paths if path in self.outlines}
        return reachable(start, self.edges, self._functions)

    @cached_property
    def steps(self) -> Steps:
        return find_steps(dict(self.outlines), self.edges)

    @cached_property
    def _functions(self) -> dict[Key, Function]:
        return {item.key: item for one in self.outlines.values() for item in one.functions.values()}

    @cached_property
    def _callers(self) -> dict[Key, int]:
        found: dict[Key, int] = {}
        for edge in self.edges:
            found[edge.called] = found.get(edge.called, 0) + (edge.site >= 0)
        return found


def read_program(files: Mapping[str, File]) -> Program:
    """The program of these files, by the paths that it is to know them by."""
    project = Project(files.values())
    outlines: dict[str, Outline] = {}
    unread: list[str] = []
    for path, file in files.items():
        outline = _outline(project, path, file)
        if outline is None:
            unread.append(path)
        else:
            outlines[path] = outline
    names = Names(project, {path: files[path].name for path in outlines}, outlines)
    flow = Flow(outlines, names)
    flow.settle()
    edges = (*flow.edges, *_imports(outlines, names))
    project.release()
    return Program(outlines, edges, tuple(unread))


def _outline(project: Project, path: str, file: File) -> Outline | None:
    data = file.read()
    text = decode(data, file.name) if isinstance(data, bytes) else None
    if not isinstance(text, str) or file.name.endswith(".ipynb"):
        return None
    source = Source(file.name, text)
    tree = parse(source)
    if not isinstance(tree, ast.Module):
        return None
    try:
        return outline_of(project.scene(source, tree), path)
    except RecursionError:  # expressions nested by a generator, deeper than Python walks
        return None


def _imports(outlines: dict[str, Outline], names: Names) -> Iterable[Edge]:
    """An import runs the top level of the file."""
    for path, outline in outlines.items():
        for full in dict.fromkeys((*outline.aliases.values(), *outline.stars)):
            found = names.definition(full, outline)
            if found is not None and found[0] != path:
                yield Edge(Key(path, ""), -1, Key(found[0], ""))
