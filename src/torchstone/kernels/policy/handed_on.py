"""The part of the policy that is about who holds what: modules, shared classes, makers of classes.

The policy reads names. So a name stands for one thing, a module is not kept where no name leads to
it, and what makes or is a class that the checks share is not given to code that could change it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.kernels.policy.syntax import (
    MOST_MEANINGS,
    Breach,
    breach,
    homes_of,
    meanings_of,
    path_of,
)

_SHARED = frozenset({"torch.Tensor", "torch.nn.Module", "torch.nn.Parameter"})
"""Classes that the checks use as well: whoever is given one can change what they see."""
_ENUMS = frozenset({"enum.Enum", "enum.IntEnum"})
_WRITTEN = _ENUMS | {"typing.NamedTuple"}
"""What is inherited from: called, it makes a class that the syntax does not show."""
_KEEPS = frozenset({"isinstance", "issubclass", "cast", "TypeVar"})
"""Functions that are given a class to compare with it or to name it."""
_GENERIC = frozenset({"list", "tuple", "dict", "set", "type", "frozenset"})


def handed_on_breaches(tree: ast.Module, modules: frozenset[str]) -> Iterator[Breach]:
    """Names of two meanings, modules inside of classes, classes that are given away or made."""
    yield from _ambiguous(tree, modules)
    homes = homes_of(tree)
    for statement in in_class_bodies(tree):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield breach(statement, "imports inside of a class", "在类体中导入")
    fine = _fine_places(tree, homes)
    for node in ast.walk(tree):
        path = _path(node, homes)
        if path in _SHARED | _WRITTEN and id(node) not in fine:
            yield breach(node, f"hands the class {path} on", f"把类 {path} 当作值传递")
    yield from _types(tree)
    yield from _made_classes(tree, homes)


def in_class_bodies(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run in the body of a class: what they bind are its members."""
    waiting = [
        item for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for item in node.body
    ]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += [
                item for item in ast.walk(node) if isinstance(item, ast.stmt) and item is not node
            ]


def _ambiguous(tree: ast.Module, modules: frozenset[str]) -> Iterator[Breach]:
    """A name of a module that stands for something else, too, wherever that is."""
    for name, found in sorted(meanings_of(tree).items()):
        paths = sorted({path for path, _ in found})
        if len(paths) == MOST_MEANINGS or (len(paths) > 1 and modules & set(paths)):
            line = max(line for _, line in found)
            what = " / ".join(paths[:3])
            node = ast.Name(name, ast.Load(), lineno=line, col_offset=0)
            yield breach(
                node,
                f"gives the name {name} several meanings: {what}",
                f"名称 {name} 有多种含义：{what}",
            )


def _path(node: ast.AST, homes: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute):
        return path_of(node, homes)
    return homes.get(node.id, "") if isinstance(node, ast.Name) and _is_read(node) else ""


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _fine_places(tree: ast.Module, homes: dict[str, str]) -> set[int]:
    """Where a class is named, compared with, inherited from or called, and not given away."""
    inside = {id(item) for item in in_class_bodies(tree)}
    found: set[int] = set()

    def allow(*items: ast.AST | None) -> None:
        found.update(id(part) for item in items if item is not None for part in ast.walk(item))

    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(id(node.value))
        elif isinstance(node, ast.ClassDef):
            found.update(map(id, node.bases))
        elif isinstance(node, ast.Call):
            found.add(id(node.func))
            if _last_name(node.func) in _KEEPS:
                allow(*node.args, *(item.value for item in node.keywords))
        elif isinstance(node, ast.Compare):
            found.update(map(id, (node.left, *node.comparators)))
        elif isinstance(node, ast.MatchClass):
            found.add(id(node.cls))
        elif isinstance(node, ast.arg | ast.AnnAssign):
            allow(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            allow(node.returns)
        elif isinstance(node, ast.Subscript) and _is_generic(node.value, homes):
            allow(node.slice)
        elif isinstance(node, ast.Assign) and id(node) not in inside:
            if all(isinstance(item, ast.Name) for item in node.targets):
                found.add(id(node.value))  # another name of it, which the policy follows
    return found


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_generic(node: ast.expr, homes: dict[str, str]) -> bool:
    """`Tuple[...]`, `list[...]`: a type in words."""
    if isinstance(node, ast.Name) and node.id in _GENERIC:
        return True
    return _path(node, homes).startswith(("typing.", "collections.abc."))


def _types(tree: ast.Module) -> Iterator[Breach]:
    """`type(x)` is compared or told by its name: called it makes classes, kept it can be changed."""
    fine: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            fine.update(id(part) for part in (node.left, *node.comparators))
        elif isinstance(node, ast.Attribute) and node.attr == "__name__":
            fine.add(id(node.value))
    asked = {
        id(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and id(node) in fine and len(node.args) == 1
        and not node.keywords and not isinstance(node.args[0], ast.Starred)
    }  # fmt: skip
    named = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Subscript)
    }  # `type[...]` in an annotation
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "type" and _is_read(node):
            if id(node) not in asked | named:
                yield breach(node, "uses type for more than a comparison", "type 不只用于比较")


def _made_classes(tree: ast.Module, homes: dict[str, str]) -> Iterator[Breach]:
    """Enumerations and records are written as classes, with members: calls take any words."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (path := _path(node.func, homes)) in _WRITTEN:
            yield breach(node, f"makes a class by a call of {path}", f"通过调用 {path} 创建类")
        elif isinstance(node, ast.ClassDef):
            derived = any(_path(base, homes) in _ENUMS for base in node.bases)
            if derived and not any(isinstance(item, ast.Assign) for item in node.body):
                yield breach(node, "defines an enumeration without members", "定义了没有成员的枚举")
