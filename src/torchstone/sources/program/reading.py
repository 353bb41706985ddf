"""From a parsed file to its outline."""

from __future__ import annotations

import ast

from torchstone.sources.program.outline import (
    NOTHING,
    Attribute,
    Call,
    Class,
    Expression,
    Function,
    Key,
    Loop,
    Mixed,
    Name,
    Outline,
    Site,
)
from torchstone.sources.scene import FUNCTIONS, LOOPS, Scene
from torchstone.sources.scene import Function as FunctionNode
from torchstone.sources.training import backward_calls, gated, step_calls

_PROPERTIES = ("property", "cached_property")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def outline_of(scene: Scene, path: str) -> Outline:
    """The outline of a file; `path` is the one that the program knows it by."""
    found = Outline(path, scene.module, scene.is_test)
    found.aliases, found.stars = scene.imports.aliases, scene.imports.stars
    trains = frozenset(map(id, (*backward_calls(scene), *step_calls(scene))))
    reader = _Reader(scene, found, trains)
    last = max((getattr(item, "end_lineno", 0) for item in scene.root.body), default=0)
    top = Function(Key(path, ""), first=1, last=last)
    found.functions[""] = top
    reader.read_block(scene.root.body, top, "", "", -1)
    return found


class _Reader:
    """Walks one file."""

    def __init__(self, scene: Scene, found: Outline, trains: frozenset[int]) -> None:
        self._scene, self._found, self._trains = scene, found, trains
        self._loop_nodes: list[ast.AST] = []

    # -- statements

    def read_block(
        self, block: list[ast.stmt], function: Function, scope: str, owner: str, loop: int
    ) -> None:
        for statement in block:
            self._read(statement, function, scope, owner, loop)

    def _read(self, node: ast.stmt, function: Function, scope: str, owner: str, loop: int) -> None:
        if isinstance(node, FUNCTIONS):
            self._read_function(node, function, scope, owner, loop)
        elif isinstance(node, ast.ClassDef):
            self._read_class(node, function, scope, loop)
        elif isinstance(node, LOOPS):
            self._read_loop(node, function, scope, owner, loop)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                names = _names(item.optional_vars)
                value = self._value(item.context_expr, function, loop)
                function.iterated.append((names, value))
            self.read_block(node.body, function, scope, owner, loop)
        elif isinstance(node, ast.Return):
            function.returned.append(self._value(node.value, function, loop))
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._read_assignment(node, function, owner, loop)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    function.evaluated.append(self._value(child, function, loop))
            for part in ("body", "orelse", "finalbody", "handlers", "cases"):
                for inner in getattr(node, part, ()):
                    if isinstance(inner, ast.stmt):
                        self._read(inner, function, scope, owner, loop)
                    else:  # an exception handler, a case of a match
                        self.read_block(inner.body, function, scope, owner, loop)

    def _read_function(
        self, node: FunctionNode, around: Function, scope: str, owner: str, loop: int
    ) -> None:
        inner = f"{scope}.{node.name}" if scope else node.name
        arguments = node.args
        ordered = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        made = Function(
            Key(self._found.path, inner),
            owner,
            node.lineno,
            node.end_lineno or node.lineno,
            tuple(item.arg for item in ordered),
            tuple(item.arg for item in (arguments.vararg, arguments.kwarg) if item),
            {
                item.arg: self._value(item.annotation, around, loop)
                for item in ordered
                if item.annotation is not None
            },
            is_property=any(self._scene.last_name(d) in _PROPERTIES for d in node.decorator_list),
        )
        self._found.functions.setdefault(inner, made)
        for extra in (*node.decorator_list, *arguments.defaults, *arguments.kw_defaults):
            if extra is not None:
                value = self._value(extra, around, loop)
                # a decorator is called with the function
                around.evaluated.append(value)
                if extra in node.decorator_list:
                    around.evaluated.append(self._call(value, (Name(node.name),), node, around))
        self.read_block(node.body, made, inner, "", -1)

    def _read_class(self, node: ast.ClassDef, around: Function, scope: str, loop: int) -> None:
        inner = f"{scope}.{node.name}" if scope else node.name
        made = Class(
            Key(self._found.path, inner),
            tuple(self._value(base, around, loop) for base in node.bases),
            tuple(self._scene.qualified(_bare(base)) for base in node.bases),
        )
        self._found.classes.setdefault(inner, made)
        # the body runs where the class is made; its methods belong to it
        self.read_block(node.body, around, inner, inner, loop)

    def _read_loop(
        self,
        node: ast.For | ast.AsyncFor | ast.While,
        function: Function,
        scope: str,
        owner: str,
        loop: int,
    ) -> None:
        if isinstance(node, ast.While):
            function.evaluated.append(self._value(node.test, function, loop))
        else:
            value = self._value(node.iter, function, loop)
            function.iterated.append((_names(node.target), value))
        number = len(function.loops)
        function.loops.append(Loop(node.lineno, node.end_lineno or node.lineno, loop))
        self._loop_nodes.append(node)
        self.read_block(node.body, function, scope, owner, number)
        self._loop_nodes.pop()
        self.read_block(node.orelse, function, scope, owner, loop)

    def _read_assignment(
        self,
        node: ast.Assign | ast.AnnAssign | ast.AugAssign,
        function: Function,
        owner: str,
        loop: int,
    ) -> None:
        value = self._value(node.value, function, loop)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for item in _flat(target):
                if isinstance(item, ast.Name) and owner:
                    self._found.classes[owner].members.setdefault(item.id, []).append(value)
                elif isinstance(item, ast.Name):
                    function.bindings.append((item.id, value))
                elif isinstance(item, ast.Attribute):
                    holder = self._value(item.value, function, loop)
                    function.stored.append((holder, item.attr, value))
                elif isinstance(item, ast.Subscript):  # a container holds what is put into it
                    self._store_item(item, value, function, loop)
        function.evaluated.append(value)

    def _store_item(
        self, item: ast.Subscript, value: Expression, function: Function, loop: int
    ) -> None:
        base = item.value
        if isinstance(base, ast.Name):
            function.bindings.append((base.id, value))
        elif isinstance(base, ast.Attribute):
            function.stored.append((self._value(base.value, function, loop), base.attr, value))

    # -- expressions

    def _value(self, node: ast.AST | None, function: Function, loop: int) -> Expression:
        if node is None or isinstance(node, ast.Constant):
            return NOTHING
        if isinstance(node, ast.Name):
            return Name(node.id)
        if isinstance(node, ast.Attribute):
            return Attribute(self._value(node.value, function, loop), node.attr)
        if isinstance(node, ast.Call):
            return self._read_call(node, function, loop)
        if isinstance(node, ast.NamedExpr):
            value = self._value(node.value, function, loop)
            function.bindings.append((node.target.id, value))
            return value
        if isinstance(node, _COMPREHENSIONS):
            for part in node.generators:
                over = self._value(part.iter, function, loop)
                function.iterated.append((_names(part.target), over))
        if isinstance(node, ast.Lambda):
            return self._value(node.body, function, loop)
        parts = tuple(
            value
            for child in ast.iter_child_nodes(node)
            if (value := self._value(child, function, loop)) != NOTHING
        )
        return parts[0] if len(parts) == 1 else Mixed(parts)

    def _read_call(self, node: ast.Call, function: Function, loop: int) -> Call:
        called = self._value(node.func, function, loop)
        positional = tuple(self._value(item, function, loop) for item in node.args)
        named = tuple(
            (item.arg or "", self._value(item.value, function, loop)) for item in node.keywords
        )
        seldom = (
            bool(self._loop_nodes) and loop >= 0 and gated(self._scene, node, self._loop_nodes[-1])
        )
        site = len(function.sites)
        function.sites.append(Site(node.lineno, loop, seldom, id(node) in self._trains))
        return Call(called, positional, named, site)

    def _call(
        self, called: Expression, given: tuple[Expression, ...], node: ast.stmt, function: Function
    ) -> Call:
        site = len(function.sites)
        function.sites.append(Site(node.lineno))
        return Call(called, given, (), site)


def _bare(base: ast.expr) -> ast.expr:
    """`Generic` of `Generic[T]`."""
    return base.value if isinstance(base, ast.Subscript) else base


def _flat(target: ast.AST) -> list[ast.AST]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [inner for item in target.elts for inner in _flat(item)]
    return [target.value] if isinstance(target, ast.Starred) else [target]


def _names(target: ast.AST | None) -> tuple[str, ...]:
    """The plain names that a target binds."""
    if target is None:
        return ()
    return tuple(item.id for item in _flat(target) if isinstance(item, ast.Name))
