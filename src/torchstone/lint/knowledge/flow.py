"""What reaches what within a file: order, branches, callers, and what a name was made from."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchstone.lint.facts.paths import contradict
from torchstone.sources.scene import FUNCTIONS, LOOPS, Function, Scene
from torchstone.sources.targets import target_of
from torchstone.sources.tree import below

_WITHS = (ast.With, ast.AsyncWith)
_FIELDS = ("body", "orelse", "handlers", "finalbody", "cases")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_KEEPS = frozenset(("cuda", "cpu", "to", "half", "bfloat16", "float", "double", "eval", "train",
                    "requires_grad_", "compile"))  # fmt: skip


def _field(owner: ast.AST, child: ast.AST) -> str:
    for name in _FIELDS:
        block = getattr(owner, name, None)
        if (isinstance(block, list) and child in block) or block is child:
            return name
    return ""


def _arms(scene: Scene, node: ast.AST) -> dict[ast.AST, tuple[str, ast.AST]]:
    """The blocks around a node within its function, with the child that leads to it."""
    found: dict[ast.AST, tuple[str, ast.AST]] = {}
    child = node
    for up in scene.ancestors(node):
        found[up] = (_field(up, child), child)
        if isinstance(up, (*FUNCTIONS, ast.Lambda)):
            break
        child = up
    return found


def exclusive(scene: Scene, one: ast.AST, other: ast.AST) -> bool:
    """Whether two places stand in different arms of one branch."""
    first, second = _arms(scene, one), _arms(scene, other)
    for owner, (arm, child) in first.items():
        if owner not in second:
            continue
        other_arm, other_child = second[owner]
        if isinstance(owner, (ast.If, ast.IfExp)):
            if {arm, other_arm} == {"body", "orelse"}:
                return True
            continue
        cases = isinstance(owner, ast.Match) and arm == other_arm == "cases"
        handled = isinstance(owner, ast.Try) and "handlers" in (arm, other_arm)
        if (cases or handled) and child is not other_child:
            return True
    return contradict(scene, one, other) if same_scope(scene, one, other) else False


def same_scope(scene: Scene, one: ast.AST, other: ast.AST) -> bool:
    return scene.scope(one) is scene.scope(other)


def before(one: ast.AST, other: ast.AST) -> bool:
    """Whether a node stands earlier in the file than another."""
    return _place(one) < _place(other)


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def reaches(scene: Scene, one: ast.AST, other: ast.AST) -> bool:
    """Whether control can go straight on from one place to a later one of the same function."""
    if not same_scope(scene, one, other) or not before(one, other):
        return False
    if exclusive(scene, one, other):
        return False
    around = _arms(scene, other)
    child: ast.AST = scene.statement(one) or one
    for up in scene.ancestors(child):
        if up in around:
            return True
        block = getattr(up, _field(up, child) or "body", None)
        if isinstance(block, list) and block and isinstance(block[-1], _LEAVES):
            return False
        child = up
    return True


def settles(scene: Scene, statement: ast.stmt, node: ast.AST) -> bool:
    """Whether a statement has always run when control comes to a later node."""
    around = _arms(scene, node)
    child: ast.AST = statement
    up = scene.parent(child)
    while isinstance(up, (*_WITHS, ast.Try)) and up not in around:
        child, up = up, scene.parent(up)
    if up is None or up not in around:
        return False
    return _field(up, child) == around[up][0] or isinstance(up, _WITHS)


def settled(scene: Scene, node: ast.AST | None) -> ast.expr | None:
    """What a name is bound to here, when no branch leaves that open."""
    if not isinstance(node, ast.Name):
        return None
    value = scene.value(node)
    if value is None:
        return None
    row = next((row for row in scene.bindings(node) if row.value is value), None)
    statement = row.statement if row is not None else None
    if not isinstance(statement, ast.stmt) or not same_scope(scene, statement, node):
        return value
    return value if settles(scene, statement, node) else None


def functions(scene: Scene) -> dict[str, list[Function]]:
    """Every function of a file by name."""
    found: dict[str, list[Function]] | None = scene.cache.get("functions_by_name")
    if found is None:
        found = {}
        items: list[Function] = [*scene.all(ast.FunctionDef), *scene.all(ast.AsyncFunctionDef)]
        for item in items:
            found.setdefault(item.name, []).append(item)
        scene.cache["functions_by_name"] = found
    return found


def callee(scene: Scene, call: ast.Call, here: bool = False) -> tuple[Scene, Function] | None:
    """The function of the project (or, with `here`, of this file) that a call runs, and its file."""
    return target_of(scene, call, here)


def callers(scene: Scene, function: Function) -> list[ast.Call]:
    """The calls of a function that its own file holds."""
    owner = scene.parent(function)
    home = owner if isinstance(owner, ast.ClassDef) else None
    rows = _calls_by_owner(scene).get((function.name, home), [])
    return rows if home else [call for call in rows if not scene.within(call, function)]


def _calls_by_owner(scene: Scene) -> dict[tuple[str, ast.ClassDef | None], list[ast.Call]]:
    """Calls of `self.name` by class, and calls of bare names; one walk for all questions."""
    found: dict[tuple[str, ast.ClassDef | None], list[ast.Call]] | None = scene.cache.get("owners")
    if found is None:
        found = scene.cache["owners"] = {}
        renamed = scene.imports.renamed()
        for call in scene.all(ast.Call):
            func = call.func
            if isinstance(func, ast.Name):
                name = renamed.get(func.id, func.id)
                found.setdefault((name, None), []).append(call)
            elif isinstance(func, ast.Attribute) and scene.dotted(func.value) == "self":
                found.setdefault((func.attr, scene.class_of(call)), []).append(call)
    return found


def parameters(function: Function) -> list[str]:
    """The names of a function's positional parameters."""
    return [item.arg for item in (*function.args.posonlyargs, *function.args.args)]


def passed(scene: Scene, call: ast.Call, function: Function, name: str) -> ast.expr | None:
    """What a call passes for a parameter."""
    names = parameters(function)
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if name not in names:
        return None
    position = names.index(name)
    bound = isinstance(call.func, ast.Attribute) or function.name == "__init__"
    if names[:1] == ["self"] and bound:
        position -= 1
    return scene.argument(call, position) if position >= 0 else None


def _from_callers(scene: Scene, name: ast.Name) -> ast.expr | None:
    """What this file's calls pass for a parameter, when they agree."""
    rows = scene.bindings(name)
    if len(rows) != 1 or rows[0].how != "parameter":
        return None
    function = scene.function(rows[0].node)
    if function is None or scene.scope(rows[0].node) is not function:
        return None
    given = [passed(scene, call, function, name.id) for call in callers(scene, function)]
    if len(given) == 1 and isinstance(given[0], ast.Call):
        return given[0]
    texts = {scene.dotted(item) for item in given}
    return given[0] if len(texts) == 1 and "" not in texts else None


def made(scene: Scene, node: ast.AST | None, depth: int = 8) -> ast.expr | None:
    """What a name, parameter or `self.attribute` was made from, as far as this file tells; moves
    and casts in between are passed over."""
    current = node
    for _ in range(depth):
        step: ast.expr | None = None
        if isinstance(current, ast.Name):
            step = settled(scene, current) or _from_callers(scene, current)
        elif isinstance(current, ast.Attribute) and scene.dotted(current.value) == "self":
            owner = scene.class_of(current)
            values = scene.attribute_values(owner, current.attr) if owner else []
            step = values[0] if len(values) == 1 else None
        elif isinstance(current, ast.Call) and scene.method(current) in _KEEPS:
            step = scene.receiver(current)
        elif isinstance(current, ast.Call) and scene.qualified(current.func) == "torch.compile":
            step = current.args[0] if current.args else None
        if step is None or step is current:
            break
        current = step
    return current if isinstance(current, ast.expr) else None


def maker(scene: Scene, node: ast.AST | None) -> str:
    """The qualified name of the call that made a value, or ""."""
    source = made(scene, node)
    return scene.qualified(source.func) if isinstance(source, ast.Call) else ""


def own_nodes(function: ast.AST) -> Sequence[ast.AST]:
    """Everything in a function, loop or module but what its inner functions and classes hold."""
    kept: list[ast.AST] | None = getattr(function, "own_nodes", None)
    if kept is not None:
        return kept
    found = below(function)
    if isinstance(function, (*FUNCTIONS, *LOOPS)):  # many ask; it lives and dies with the tree
        function.own_nodes = found  # type: ignore[union-attr]
    return found


def own_calls(statement: ast.AST) -> Sequence[ast.Call]:
    """The calls among a node and its `own_nodes`; those of a statement are kept, for a function is
    asked about from many places."""
    kept: list[ast.Call] | None = getattr(statement, "own_calls", None)
    if kept is None:
        below = own_nodes(statement)
        kept = [node for node in (statement, *below) if isinstance(node, ast.Call)]
        if isinstance(statement, ast.stmt):
            statement.own_calls = kept  # type: ignore[attr-defined]
    return kept


def loop_around(scene: Scene, node: ast.AST) -> ast.AST | None:
    """The innermost loop whose body a node is part of, within its function."""
    child = node
    for up in scene.ancestors(node):
        if isinstance(up, LOOPS) and child in up.body:
            return up
        if isinstance(up, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            return None
        child = up
    return None


def loops_around(scene: Scene, node: ast.AST) -> list[ast.AST]:
    """The loops around a node within its function, innermost first."""
    found: list[ast.AST] = []
    loop = loop_around(scene, node)
    while loop is not None:
        found.append(loop)
        loop = loop_around(scene, loop)
    return found
