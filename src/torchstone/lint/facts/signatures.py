"""Which arguments a call may give: of functions and classes of the project, and of torch."""

from __future__ import annotations

import ast
import builtins
from typing import NamedTuple

from torchstone.lint.facts.members import has_subclass, outline_of
from torchstone.lint.knowledge.torch_names import entry
from torchstone.sources.scene import Function, Scene
from torchstone.sources.targets import class_of_value, method_of, target_of

_BUILTINS = frozenset(dir(builtins))
_TRANSPARENT = frozenset(
    "torch.no_grad torch.enable_grad torch.inference_mode functools.lru_cache functools.cache "
    "torch.jit.export torch.jit.ignore torch.autocast torch.cuda.amp.autocast".split()
)
"""Decorators that leave the arguments as they are."""


class Signature(NamedTuple):
    """What a function takes."""

    name: str
    by_place: int | None
    """How many go by position; None for any number."""
    names: frozenset[str] | None
    """What goes by name; None for anything."""
    required: tuple[str, ...] = ()
    """What has no default, in order; those that go by position come first."""
    place_names: tuple[str, ...] = ()


class Misfit(NamedTuple):
    """How a call does not fit."""

    reason: str
    """`unknown`, `many` or `missing`."""
    name: str


def misfit(call: ast.Call, takes: Signature) -> Misfit | None:
    """What is wrong with the arguments of a call that unpacks none."""
    given = {item.arg for item in call.keywords}
    if takes.names is not None:
        for keyword in call.keywords:
            if keyword.arg not in takes.names:
                return Misfit("unknown", str(keyword.arg))
    if takes.by_place is not None and len(call.args) > takes.by_place:
        return Misfit("many", f"{len(call.args)} > {takes.by_place}")
    placed = set(takes.place_names[: len(call.args)])
    for name in takes.required:
        if name not in given and name not in placed:
            return Misfit("missing", name)
    return None


def signature_of(scene: Scene, call: ast.Call) -> Signature | None:
    """What the function takes that a call runs; None when that is not known."""
    func = call.func
    if isinstance(func, ast.Name) and func.id in _BUILTINS:
        return None
    if is_ambiguous(scene, func):
        return None
    full = scene.qualified(func)
    if full.startswith("torch."):
        return _of_torch(full)
    made = scene.project.class_named(scene, call.func, full)
    if made is not None:
        return _of_class(*made) if _is_one(made[0], made[1]) else None
    name = func.attr if isinstance(func, ast.Attribute) else ""
    if not name or outline_of(scene.project).functions[name.encode()]:
        target = target_of(scene, call)
        if target is not None:
            return _of_target(scene, call, *target)
    on_self = isinstance(func, ast.Attribute) and scene.dotted(func.value) == "self"
    return _of_object(scene, call) if on_self or not name else None


def is_ambiguous(scene: Scene, node: ast.expr) -> bool:
    """Whether a name that is imported is bound in another way too, somewhere in the file."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in scene.imports.aliases:
        return False
    counts: dict[str, int] | None = scene.cache.get("imported")
    if counts is None:
        counts = scene.cache["imported"] = {}
        seen: set[tuple[str, str, str]] = set()
        imports: list[ast.Import | ast.ImportFrom] = [*scene.all(ast.Import)]
        for item in [*imports, *scene.all(ast.ImportFrom)]:
            home = str(getattr(item, "module", ""))
            for alias in item.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                key = (alias.asname or whole, home, whole)
                if key not in seen:
                    seen.add(key)
                    counts[key[0]] = counts.get(key[0], 0) + 1
    return counts.get(node.id, 0) > 1 or node.id in scene.bound


def _of_torch(full: str) -> Signature | None:
    known = entry(full)
    if known is None or known.names is None or full.split(".")[-2][:1].isupper():
        return None  # `nn.Module.train(self, mode)` gives the object, too
    names = None if "**" in known.names else known.names | _of_numpy(known.names)
    return Signature(full, known.by_place, names)


def _of_numpy(names: frozenset[str]) -> frozenset[str]:
    """The names of numpy that torch takes for its own."""
    known = {
        "dim": ("axis",),
        "keepdim": ("keepdims",),
        "input": ("x", "a", "x1"),
        "other": ("x2",),
    }
    return frozenset(alias for name in names for alias in known.get(name, ()))


def _of_class(scene: Scene, owner: ast.ClassDef) -> Signature | None:
    """What making an object of a class takes: the first `__init__` on the way up."""
    if owner.decorator_list or owner.keywords or len(owner.bases) > 1:
        return None
    if method_of(scene, owner, "__new__") is not None:
        return None
    found = method_of(scene, owner, "__init__")
    if found is None:
        return None
    own = any(item is found[1] for item in owner.body)
    parent = found[0].class_of(found[1])
    if parent is None or (not own and parent.decorator_list):
        return None
    return _of_function(found[0], found[1], owner.name, bound=True)


def _of_target(scene: Scene, call: ast.Call, home: Scene, function: Function) -> Signature | None:
    owner = home.class_of(function)
    if owner is None:
        single = home.parent(function) is not home.root or _is_one(home, function)
        return _of_function(home, function, function.name, bound=False) if single else None
    if sum(getattr(item, "name", "") == function.name for item in owner.body) != 1:
        return None
    caller = scene.class_of(call)
    if caller is not None and _is_overridden(scene, caller, owner, function):
        return None
    if _is_super(call) and (caller is None or len(caller.bases) > 1):
        return None
    return _of_function(home, function, function.name, bound=True)


def _is_super(call: ast.Call) -> bool:
    func = call.func
    return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call)


def _is_overridden(
    scene: Scene, caller: ast.ClassDef, owner: ast.ClassDef, function: Function
) -> bool:
    """Whether a subclass may have a method of this name that takes something else."""
    several = outline_of(scene.project).functions[function.name.encode()] > 1
    return several and (has_subclass(scene.project, caller) or has_subclass(scene.project, owner))


def _of_object(scene: Scene, call: ast.Call) -> Signature | None:
    """`self.block(x)` runs the `forward` of the module that `self.block` is."""
    if not isinstance(call.func, (ast.Name, ast.Attribute)):
        return None
    found = class_of_value(scene, call.func)
    if found is None or not found[0].is_module_class(found[1]):
        return None
    if method_of(*found, "__call__") is not None or len(found[1].bases) > 1:
        return None
    forward = method_of(*found, "forward")
    return _of_function(*forward, f"{found[1].name}.forward", bound=True) if forward else None


def _is_one(scene: Scene, node: Function | ast.ClassDef) -> bool:
    """Whether a name of a file always stands for this definition."""
    counts: dict[str, int] | None = scene.cache.get("bound at top")
    if counts is None:
        counts = scene.cache["bound at top"] = {}
        for item in scene.definitions:
            if not isinstance(scene.parent(item), ast.ClassDef):
                counts[item.name] = counts.get(item.name, 0) + 1
        for name in scene.all(ast.Name):
            if name.ctx.__class__ is not ast.Load and scene.scope(name) is scene.root:
                counts[name.id] = counts.get(name.id, 0) + 1
        for alias in scene.imports.aliases:
            counts[alias] = counts.get(alias, 0) + 1
    return counts.get(node.name) == 1


def _of_function(home: Scene, function: Function, name: str, bound: bool) -> Signature | None:
    known: dict[tuple[Function, bool], Signature | None] = home.cache.setdefault("signatures", {})
    key = (function, bound)
    if key not in known:
        known[key] = _read_signature(home, function, name, bound)
    found = known[key]
    return found if found is None or found.name == name else found._replace(name=name)


def _read_signature(home: Scene, function: Function, name: str, bound: bool) -> Signature | None:
    static = False
    for mark in function.decorator_list:
        inner = mark.func if isinstance(mark, ast.Call) else mark
        word = home.qualified(inner) or home.dotted(inner)
        static = static or word == "staticmethod"
        if word not in ("staticmethod", "classmethod") and word not in _TRANSPARENT:
            return None
    given = function.args
    rows = [row.arg for row in (*given.posonlyargs, *given.args)]
    defaults = len(given.defaults)
    free = rows[: len(rows) - defaults] if defaults else list(rows)
    if bound and not static:
        if not rows and given.vararg is None:
            return None
        rows, free = rows[1:], free[1:]
    only = [row.arg for row in given.kwonlyargs]
    free += [
        row.arg
        for row, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if default is None
    ]
    names = None if given.kwarg is not None else frozenset((*rows, *only))
    by_place = None if given.vararg is not None else len(rows)
    return Signature(name, by_place, names, tuple(free), tuple(rows))
