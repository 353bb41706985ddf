"""One walk over a syntax tree: every node's parent, and the nodes by type."""

from __future__ import annotations

import ast
from collections import defaultdict

# Annotations, operators and contexts are never asked for; leaving them out halves the walk.
_SKIPPED = frozenset(
    ("ctx", "type_comment", "type_ignores", "op", "ops", "annotation", "returns", "type_params")
    + ("id", "attr", "arg", "module", "level", "simple", "is_async", "conversion", "kind", "asname")
)
_PLAIN_NAME = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.alias)
_PLAIN_NAMES = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)


def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    skipped = set(_SKIPPED)
    if kind in _PLAIN_NAME:
        skipped.add("name")
    if kind in _PLAIN_NAMES:
        skipped.add("names")
    if kind.__name__.startswith("Match"):
        skipped |= {"name", "rest", "kwd_attrs", "cls"}
    if kind is ast.Constant:
        skipped.add("value")
    return tuple(name for name in kind._fields if name not in skipped)


FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: _fields(kind)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
_LEAVES = frozenset((type(None), str, bool, ast.Constant, ast.Pass, ast.Break))


class Tree:
    """A module's nodes with their parents; built in one pass without recursion."""

    __slots__ = ("by_type", "parents", "root")

    def __init__(self, root: ast.Module) -> None:
        self.root = root
        parents: dict[ast.AST, ast.AST] = {}
        by_type: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        nodes: list[ast.AST] = [root]
        add, leaves, fields = nodes.append, _LEAVES, FIELDS
        for node in nodes:  # grows while it is walked
            kind = node.__class__
            by_type[kind].append(node)
            for name in fields[kind]:
                value = getattr(node, name, None)
                if value.__class__ is list:
                    for child in value:
                        if child.__class__ not in leaves:
                            parents[child] = node
                            add(child)
                elif value.__class__ not in leaves:
                    parents[value] = node  # type: ignore[index]
                    add(value)  # type: ignore[arg-type]
        self.parents = parents
        self.by_type = by_type


_BRANCHES = {kind: fields for kind, fields in FIELDS.items() if fields}
_INNER = frozenset((ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef))


def inside(node: ast.AST) -> list[ast.AST]:
    """The node and everything below it, in source order as far as the tree has one."""
    found: list[ast.AST] = []
    stack = [node]
    pop, add, push, base = stack.pop, found.append, stack.append, ast.AST
    while stack:
        item = pop()
        add(item)
        for name in reversed(_BRANCHES.get(item.__class__, ())):
            value = getattr(item, name, None)
            if value.__class__ is list:
                if value:
                    stack += [child for child in reversed(value) if isinstance(child, base)]
            elif isinstance(value, base):
                push(value)
    return found


def below(node: ast.AST) -> list[ast.AST]:
    """Everything below a node but what its inner functions and classes hold."""
    found: list[ast.AST] = []
    stack = children(node)
    pop, add, push, base = stack.pop, found.append, stack.append, ast.AST
    while stack:
        item = pop()
        add(item)
        kind = item.__class__
        if kind in _INNER:
            continue
        for name in _BRANCHES.get(kind, ()):
            value = getattr(item, name, None)
            if value.__class__ is list:
                if value:
                    stack += [child for child in value if isinstance(child, base)]
            elif isinstance(value, base):
                push(value)
    return found


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node; contexts, operators and annotations are left out."""
    found: list[ast.AST] = []
    for name in FIELDS[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found
