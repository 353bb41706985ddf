"""What a rule may ask about a place in a file: names, scopes, regions, loops, values."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from torchstone.core.fix import Edit
from torchstone.sources import ranks, regions, training, values
from torchstone.sources.names import Imports, dotted, read_imports
from torchstone.sources.source import Source
from torchstone.sources.tree import Tree, inside
from torchstone.sources.writing import Writing

if TYPE_CHECKING:
    from torchstone.sources.project import Project

N = TypeVar("N", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
_SCOPE_KINDS = frozenset(SCOPES)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
MISSING = object()
_DECORATED = 50  # decorators stand above the line that a function counts from


def is_named_as_test(path: str) -> bool:
    """Whether a file is a test by its own name."""
    stem = PurePath(path).stem
    named = stem in ("conftest", "tests", "testing_utils")
    return named or stem.startswith("test_") or stem.endswith("_test")


class Scene(Writing):
    """One parsed file and the questions rules put to it. Nothing is computed before it is asked."""

    def __init__(
        self, source: Source, root: ast.Module, project: Project, module: str, package: str
    ) -> None:
        super().__init__(source)
        self.root = root
        self.project = project
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
        return self.project.resolve(".".join((target, *names)), self.source.path)

    def _from_star(self, name: str, names: list[str]) -> str:
        if not self.imports.stars or name in self.bound:
            return ""
        for star in self.imports.stars:
            found = self.project.star(star, name, self.source.path)
            if found:
                return self.project.resolve(".".join((found, *names)), self.source.path)
        return ""

    @functools.cached_property
    def bound(self) -> frozenset[str]:
        """Names that the file itself defines anywhere."""
        names = {node.id for node in self.all(ast.Name) if isinstance(node.ctx, ast.Store)}
        names.update(node.name for node in self.definitions)
        names.update(argument.arg for argument in self.all(ast.arg))
        return frozenset(names)

    def is_name(self, node: ast.AST | None, names: Collection[str]) -> bool:
        """Whether a node stands for one of these qualified names."""
        return self.qualified(node) in names

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

    def literal(self, node: ast.AST | None) -> Any:
        """The value of a constant (also `-1`, and a name bound once to one), else MISSING."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.literal(node.operand)
            return -inner if isinstance(inner, (int, float)) else MISSING
        if isinstance(node, ast.Name):
            bindings = values.bindings(self, node)
            if len(bindings) == 1 and isinstance(bindings[0].value, ast.Constant):
                return bindings[0].value.value
        return MISSING

    # -- what is known about a place (each answered by a file of its own) -------------------------

    def region(self, node: ast.AST) -> regions.Region:
        """Autocast, no_grad and inference_mode at a node, callers of its function included."""
        return regions.region_of(self, node)

    def lexical_region(self, node: ast.AST) -> regions.Region:
        """The same, but from this function alone."""
        return regions.lexical(self, node)[0]

    def step_loop(self, node: ast.AST) -> ast.AST | None:
        """The loop (or step function) that runs a training step each time round, if in one."""
        return training.step_loop(self, node)

    def in_step_loop(self, node: ast.AST) -> bool:
        """Whether the node runs on every training step (not gated by `if step % n`)."""
        loop = training.step_loop(self, node)
        return loop is not None and not training.gated(self, node, loop)

    def rank_branch(self, node: ast.AST) -> ranks.RankBranch | None:
        """The rank-dependent branch or early return that decides whether a node runs."""
        return ranks.rank_branch(self, node)

    def is_module_class(self, node: ast.ClassDef) -> bool:
        """Whether a class is an nn.Module, also through classes of the project."""
        return self.derives(node, regions.MODULE_BASES)

    def derives(self, node: ast.ClassDef, names: Collection[str], depth: int = 6) -> bool:
        """Whether a class has one of these qualified names among its bases."""
        for base in node.bases:
            if isinstance(base, ast.Subscript):
                base = base.value
            full = self.qualified(base)
            if full in names:
                return True
            found = self.project.class_named(self, base, full) if depth else None
            if found and found[1] is not node and found[0].derives(found[1], names, depth - 1):
                return True
        return False

    def forward_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The nn.Module class whose `forward` a node stands in."""
        return self._method_class(node, ("forward",), regions.MODULE_BASES)

    def getitem_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The Dataset class whose `__getitem__` (or `__iter__`) a node stands in."""
        return self._method_class(node, ("__getitem__", "__iter__"), regions.DATASET_BASES)

    def _method_class(
        self, node: ast.AST, methods: Collection[str], bases: Collection[str]
    ) -> ast.ClassDef | None:
        function = self.function(node)
        while function is not None:
            owner = self.parent(function)
            if isinstance(owner, ast.ClassDef):
                if function.name in methods and self.derives(owner, bases):
                    return owner
                return None
            function = self.function(function)
        return None

    def value(self, node: ast.AST | None) -> ast.expr | None:
        """The expression last bound to a name before it is read here, when that is plain to see."""
        return values.value_of(self, node)

    def bindings(self, node: ast.Name) -> list[values.Binding]:
        """Everything that binds this name in the scope that owns it."""
        return values.bindings(self, node)

    def attribute_values(self, owner: ast.ClassDef, name: str) -> list[ast.expr]:
        """Every expression that the class assigns to `self.name`."""
        return values.attribute_values(self, owner, name)

    def attribute_sources(self, owner: ast.ClassDef, name: str) -> list[values.Source]:
        """The same, those included that take one part of what is unpacked."""
        return values.attribute_sources(self, owner, name)

    def origin(self, node: ast.AST | None) -> ast.expr | None:
        """What a name or `self.attribute` was made from: the expression at its first source."""
        return values.origin(self, node)

    def dtype(self, node: ast.AST | None) -> str:
        """`float16`, `bfloat16`, `float32`, … of a tensor expression where it is known, else ""."""
        return values.dtype_of(self, node)

    def dtype_literal(self, node: ast.AST | None) -> str:
        """`float16` for `torch.half`, `torch.float16`, "float16"; "" for what is no dtype."""
        return values.dtype_literal(self, node)

    def is_half(self, node: ast.AST | None) -> bool:
        """Whether an expression is known to hold float16 or bfloat16."""
        return values.dtype_of(self, node) in ("float16", "bfloat16")

    def is_model(self, node: ast.AST | None) -> bool:
        """Whether an expression is an nn.Module as far as its making or its name tells."""
        return values.is_model(self, node)

    def is_optimizer(self, node: ast.AST | None) -> bool:
        """Whether an expression is an optimizer as far as its making or its name tells."""
        return values.is_optimizer(self, node)
