"""One parsed file: its tree, its scopes, its names and calls."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Protocol, TypeVar

from torchstone.core.fix import Edit
from torchstone.sources.names import Imports, dotted, read_imports
from torchstone.sources.source import Source
from torchstone.sources.tree import Tree, inside
from torchstone.sources.writing import Writing

N = TypeVar("N", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
_SCOPE_KINDS = frozenset(SCOPES)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_DECORATED = 50  # decorators stand above the line that a function counts from


def is_named_as_test(path: str) -> bool:
    """Whether a file is a test by its own name."""
    stem = PurePath(path).stem
    named = stem in ("conftest", "tests", "testing_utils")
    return named or stem.startswith("test_") or stem.endswith("_test")


class NamesElsewhere(Protocol):
    """What names of other files stand for."""

    def resolve(self, name: str, importer: str) -> str:
        """Where a qualified name comes from, re-exports followed."""

    def star(self, module: str, name: str, importer: str) -> str:
        """What `name` stands for after `from module import *`, or ""."""


class ParsedFile(Writing):
    """A file and what it says of itself. Nothing is computed before it is asked."""

    def __init__(
        self, source: Source, root: ast.Module, elsewhere: NamesElsewhere, module: str, package: str
    ) -> None:
        super().__init__(source)
        self.root = root
        self._elsewhere = elsewhere
        self.module = module
        """Dotted name of this file within the project."""
        self.tree = Tree(root)
        by_type = self.tree.by_type
        self.imports: Imports = read_imports(by_type[ast.Import] + by_type[ast.ImportFrom], package)
        self.cache: dict[Any, Any] = {}
        """Answers that rules or helpers want to keep for this file."""
        self._inside: dict[ast.AST, list[ast.AST]] = {}
        self._qualified: dict[ast.AST, str] = {}
        self._calls_by_scope: dict[str, dict[ast.AST, list[ast.Call]]] = {}

    # -- the tree -------------------------------------------------------------------------------

    def all(self, *kinds: type[N]) -> list[N]:
        """Every node of these types in the file."""
        found: list[Any] = []
        for kind in kinds:
            found += self.tree.by_type.get(kind, ())
        return found

    @property
    def definitions(self) -> list[Function | ast.ClassDef]:
        """Every function and class of the file."""
        found: list[Function | ast.ClassDef] = []
        found += self.all(ast.FunctionDef)
        found += self.all(ast.AsyncFunctionDef)
        return found + self.all(ast.ClassDef)

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self.tree.parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first, up to the module."""
        parents = self.tree.parents
        while (up := parents.get(node)) is not None:
            yield up
            node = up

    def enclosing(self, node: ast.AST, *kinds: type[N]) -> N | None:
        """The innermost node of these types around a node."""
        parents = self.tree.parents
        up = parents.get(node)
        while up is not None and not isinstance(up, kinds):
            up = parents.get(up)
        return up

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, lambda or module whose variables the node sees."""
        return self._scopes.get(node, self.root)

    @functools.cached_property
    def _scopes(self) -> dict[ast.AST, ast.AST]:
        """The scope of every node, in one pass: parents come before what stands below them."""
        scopes: dict[ast.AST, ast.AST] = {}
        kinds = _SCOPE_KINDS
        for node, up in self.tree.parents.items():
            scopes[node] = up if up.__class__ in kinds else scopes[up]
        return scopes

    def function(self, node: ast.AST) -> Function | None:
        """The innermost named function around a node."""
        scopes, up = self._scopes, self._scopes.get(node)
        while up.__class__ is ast.Lambda:
            up = scopes.get(up)
        return up if isinstance(up, FUNCTIONS) else None

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around a node."""
        return self.enclosing(node, ast.ClassDef)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that a node is, or is part of."""
        return node if isinstance(node, ast.stmt) else self.enclosing(node, ast.stmt)

    def block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of statements that a statement stands in."""
        up = self.parent(statement)
        for name in ("body", "orelse", "finalbody", "handlers"):
            block = getattr(up, name, None)
            if isinstance(block, list) and statement in block:
                return block
        return [statement]

    def delete_line(self, statement: ast.stmt) -> Edit | None:
        """Remove a statement that has its lines to itself; `pass` stays in a block of its own."""
        line, column, end_line, end_column = self.span(statement)
        before, last = self.lines[line - 1][:column], self.lines[end_line - 1]
        tail = last[end_column:].strip()
        if before.strip() or (tail and not tail.startswith("#")):
            return None
        if len(self.block_of(statement)) == 1:
            return self.edit(line, column, end_line, end_column, "pass")
        if end_line < len(self.lines):
            return self.edit(line, 0, end_line + 1, 0, "")
        return self.edit(line, 0, end_line, len(last), "")

    def within(self, node: ast.AST, outer: ast.AST) -> bool:
        """Whether a node is `outer` or stands below it."""
        first, last = getattr(outer, "lineno", 0), getattr(outer, "end_lineno", None)
        at = getattr(node, "lineno", None)
        if at is not None and last is not None and not first - _DECORATED <= at <= last:
            return False  # by far the most common answer, and the cheapest
        parents = self.tree.parents
        up: ast.AST | None = node
        while up is not None and up is not outer:
            up = parents.get(up)
        return up is outer

    def inside(self, node: ast.AST) -> list[ast.AST]:
        """A node and everything below it. Not to be changed: of a function it is kept."""
        if not isinstance(node, FUNCTIONS):
            return inside(node)
        kept = self._inside.get(node)
        if kept is None:
            kept = self._inside[node] = inside(node)
        return kept

    def scope_name(self, node: ast.AST) -> str:
        """Dotted names of the classes and functions around a node, its own included."""
        names = [
            up.name
            for up in (node, *self.ancestors(node))
            if isinstance(up, (*FUNCTIONS, ast.ClassDef))
        ]
        return ".".join(reversed(names))

    @functools.cached_property
    def is_test(self) -> bool:
        """Whether the file is a test, by its own name or by what it imports: the folder it stands
        in, which depends on how the path was written, has no say."""
        if is_named_as_test(self.path):
            return True
        roots = {target.partition(".")[0] for target in self.imports.aliases.values()}
        return not roots.isdisjoint(("pytest", "unittest")) or any(
            # `from test import evaluate` takes a script that tests a model
            target.startswith(
                ("torch.testing._internal", "test.common", "test.test_", "test.support")
            )
            or target.split(".")[0] == "tests"
            for target in self.imports.aliases.values()
        )

    # -- names ----------------------------------------------------------------------------------

    @functools.cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        """Calls by the last name of what is called, import renames undone."""
        renamed = self.imports.renamed()
        found: dict[str, list[ast.Call]] = defaultdict(list)
        for call in self.all(ast.Call):
            func = call.func
            if func.__class__ is ast.Attribute:
                found[func.attr].append(call)
            elif func.__class__ is ast.Name:
                name = func.id
                found[renamed.get(name, name)].append(call)
        return found

    def calls_in(self, scope: ast.AST, name: str) -> list[ast.Call]:
        """The calls of one last name that stand in a scope, inner scopes left out."""
        by_scope: dict[ast.AST, list[ast.Call]] | None = self._calls_by_scope.get(name)
        if by_scope is None:
            by_scope = self._calls_by_scope[name] = defaultdict(list)
            for call in self.calls.get(name, ()):
                by_scope[self.scope(call)].append(call)
        return by_scope.get(scope, [])

    def qualified(self, node: ast.AST | None) -> str:
        """The full name of a name or attribute chain (`torch.nn.functional.softmax`), or ""."""
        if node.__class__ is not ast.Attribute and node.__class__ is not ast.Name:
            return ""
        known = self._qualified.get(node)
        if known is None:
            known = self._qualified[node] = self._full_name(node)
        return known

    def _full_name(self, node: ast.AST) -> str:
        base, names = dotted(node)
        if not isinstance(base, ast.Name):
            return ""
        target = self.imports.aliases.get(base.id)
        if target is None:
            return self._from_star(base.id, names)
        return self._elsewhere.resolve(".".join((target, *names)), self.source.path)

    def _from_star(self, name: str, names: list[str]) -> str:
        if not self.imports.stars or name in self.bound:
            return ""
        for star in self.imports.stars:
            found = self._elsewhere.star(star, name, self.source.path)
            if found:
                return self._elsewhere.resolve(".".join((found, *names)), self.source.path)
        return ""

    @functools.cached_property
    def bound(self) -> frozenset[str]:
        """Names that the file itself defines anywhere."""
        names = {node.id for node in self.all(ast.Name) if isinstance(node.ctx, ast.Store)}
        names.update(node.name for node in self.definitions)
        names.update(argument.arg for argument in self.all(ast.arg))
        return frozenset(names)

    def method(self, node: ast.AST | None) -> str:
        """The attribute's name when a node is `value.name` (or a call of it) on a value, not on an
        imported module; else ""."""
        func = node.func if isinstance(node, ast.Call) else node
        if not isinstance(func, ast.Attribute):
            return ""
        base, _ = dotted(func)
        if isinstance(base, ast.Name) and base.id in self.imports.aliases:
            return ""
        return func.attr

    def receiver(self, call: ast.Call) -> ast.expr | None:
        """The value that a method is called on."""
        return call.func.value if isinstance(call.func, ast.Attribute) else None

    def last_name(self, node: ast.AST | None) -> str:
        """`b` of `a.b`, `a` of `a`, else ""."""
        if isinstance(node, ast.Attribute):
            return node.attr
        return node.id if isinstance(node, ast.Name) else ""

    def dotted(self, node: ast.AST | None) -> str:
        """The chain as it is written (`self.model.head`), or "" when it is more than names."""
        if node is None:
            return ""
        base, names = dotted(node)
        return ".".join((base.id, *names)) if isinstance(base, ast.Name) else ""

    # -- calls ----------------------------------------------------------------------------------

    def keyword(self, call: ast.Call, name: str) -> ast.expr | None:
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        return None

    def argument(self, call: ast.Call, position: int, name: str = "") -> ast.expr | None:
        """An argument by place or name; None when absent or hidden behind a star."""
        if name and (found := self.keyword(call, name)) is not None:
            return found
        before = call.args[: position + 1]
        if len(before) > position and not any(isinstance(a, ast.Starred) for a in before):
            return before[position]
        return None

    def has_star(self, call: ast.Call) -> bool:
        """Whether `*args` or `**kwargs` may hide arguments."""
        for given in call.args:
            if given.__class__ is ast.Starred:
                return True
        return bool(call.keywords) and any(keyword.arg is None for keyword in call.keywords)
