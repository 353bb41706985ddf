"""DataLoaders of a file: how they are made, who iterates over them, and where batches go."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.lint.facts.callers import Site, calls_of
from torchstone.lint.facts.effects import Effect
from torchstone.lint.facts.returned import maker_of
from torchstone.lint.facts.summary import summary_within
from torchstone.lint.knowledge.flow import callers, own_nodes, passed
from torchstone.lint.knowledge.tensors import goes_to_device
from torchstone.sources.scene import LOOPS, MISSING, SCOPES, Function, Scene

LOADERS = frozenset(("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"))
_FILES = 8  # a class that more files name is not followed
_PLACES = {"batch_size": 1, "num_workers": 5, "pin_memory": 7}
_WRAPPERS = frozenset(
    ("enumerate", "tqdm", "trange", "zip", "iter", "islice", "progress_bar", "track")
)


def is_loader(scene: Scene, call: ast.Call) -> bool:
    """Whether a call makes torch's DataLoader with all its arguments in sight."""
    return scene.qualified(call.func) in LOADERS and not scene.has_star(call)


def option(scene: Scene, call: ast.Call, name: str) -> ast.expr | None:
    """An argument of a DataLoader, by name or place."""
    place = _PLACES.get(name)
    return scene.keyword(call, name) if place is None else scene.argument(call, place, name)


def in_memory(scene: Scene, call: ast.Call) -> bool:
    """Whether the dataset is known to cost nothing per item: tensors, lists, ranges."""
    data = scene.argument(call, 0, "dataset")
    made = scene.origin(data)
    if isinstance(made, (ast.List, ast.ListComp, ast.Tuple)):
        return True
    if not isinstance(made, ast.Call):
        return False
    name = scene.last_name(made.func)
    return name in ("TensorDataset", "range", "list", "zip", "arange", "randn", "rand", "tensor")


def bound_names(scene: Scene, call: ast.Call) -> frozenset[str]:
    """The names, as written, that a DataLoader is bound to."""
    up = scene.parent(call)
    if isinstance(up, ast.Assign):
        return frozenset(filter(None, (scene.dotted(target) for target in up.targets)))
    if isinstance(up, (ast.AnnAssign, ast.NamedExpr)):
        return frozenset(filter(None, (scene.dotted(up.target),)))
    return frozenset()


def iterated(scene: Scene, loop: ast.For | ast.AsyncFor) -> list[ast.expr]:
    """What a for-loop goes over, wrappers such as `enumerate` and `tqdm` taken off."""
    stack, found = [loop.iter], list[ast.expr]()
    while stack:
        item = stack.pop()
        named = scene.value(item) if isinstance(item, ast.Name) else None
        if isinstance(named, ast.IfExp):
            stack += [named.body, named.orelse]
        elif isinstance(named, ast.Call) and scene.last_name(named.func) in _WRAPPERS:
            stack += named.args
        elif isinstance(item, ast.Call) and scene.last_name(item.func) in _WRAPPERS:
            stack += item.args
        else:
            found.append(item)
    return found


def loops_over(scene: Scene, call: ast.Call) -> Iterator[ast.For]:
    """For-loops of the file over a DataLoader: in its own scope, over `self.loader`, in a function
    that takes it by the same name, or over what a caller got from the function that made it."""
    names = bound_names(scene, call)
    home = scene.scope(call)
    near = [
        loop
        for loop in (scene.all(ast.For) if names else ())
        for item in iterated(scene, loop)
        if scene.dotted(item) in names
        and (
            isinstance(item, ast.Attribute)
            or scene.scope(loop) is home
            or home is scene.root
            or (isinstance(item, ast.Name) and _may_be_given(scene, item, call))
        )
    ]
    own = [loop for loop in near if scene.scope(loop) is home]
    yield from own or near
    for name in _received(scene, call):
        for loop in scene.all(ast.For):
            if scene.scope(loop) is scene.scope(name) and any(
                isinstance(item, ast.Name) and item.id == name.id for item in iterated(scene, loop)
            ):
                yield loop


def trains_on(scene: Scene, call: ast.Call) -> bool:
    """Whether a loader feeds training: a loop over it goes backward, or its name says so."""
    return any("train" in name.lower() for name in bound_names(scene, call)) or any(
        training_loops(scene, call)
    )


def training_loops(scene: Scene, call: ast.Call) -> Iterator[tuple[Scene, ast.For]]:
    """The loops over a loader that go backward: of this file, and of files that get the loader from
    a function or an object of the project."""
    own = [loop for loop in loops_over(scene, call) if _trains(scene, loop)]
    yield from ((scene, loop) for loop in own)
    for home in () if own else files_that_get(scene, call):
        for loop in home.all(ast.For):
            if any(_is_made_by(home, item, call) for item in iterated(home, loop)):
                if _trains(home, loop):
                    yield home, loop


def _trains(scene: Scene, loop: ast.For) -> bool:
    return summary_within(scene, loop).has(Effect.BACKWARD)


def _is_made_by(scene: Scene, item: ast.expr, call: ast.Call) -> bool:
    found = maker_of(scene, item)
    return found is not None and found.call is call


def files_that_get(scene: Scene, call: ast.Call, levels: int = 2) -> list[Scene]:
    """The files that call the function, or make the object, that a node stands in; and the files
    that get it from those."""
    function = scene.function(call)
    if function is None:
        return []
    found: dict[str, Scene] = {}
    for home, site in _takers(scene, function):
        found[home.path] = home
        if levels > 1:
            found.update((item.path, item) for item in files_that_get(home, site, levels - 1))
    return list(found.values())


def _takers(scene: Scene, function: Function) -> list[Site]:
    """Where a function is called; for an `__init__`, where its class makes an object."""
    owner = scene.parent(function)
    if function.name != "__init__" or not isinstance(owner, ast.ClassDef):
        return calls_of(scene, function) or []
    homes = scene.project.files_that_call(owner.name)
    return [
        (home, site)
        for path in (homes if len(homes) <= _FILES else ())
        if (home := scene.project.load(path, scene)) is not None
        for site in home.calls.get(owner.name, ())
    ]


def _received(scene: Scene, call: ast.Call) -> Iterator[ast.Name]:
    """The names that callers bind to a loader which its function returns, alone or in a tuple."""
    function = scene.function(call)
    if function is None:
        return
    names = bound_names(scene, call)
    for node in own_nodes(function):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        for place, part in enumerate(parts):
            if part is call or scene.dotted(part) in names:
                for use in callers(scene, function):
                    yield from _target(scene, use, place, len(parts))


def _target(scene: Scene, use: ast.Call, place: int, count: int) -> Iterator[ast.Name]:
    """The name that takes one of the values a call returns."""
    up = scene.parent(use)
    if not isinstance(up, ast.Assign) or len(up.targets) != 1:
        return
    target = up.targets[0]
    if isinstance(target, ast.Tuple):
        plain = not any(isinstance(item, ast.Starred) for item in target.elts)
        found = target.elts[place] if plain and len(target.elts) == count else None
    else:
        found = target if count == 1 else None
    if isinstance(found, ast.Name):
        yield found


def _may_be_given(scene: Scene, name: ast.Name, call: ast.Call) -> bool:
    """Whether a parameter may be this loader: this file's calls pass it, or none is to be seen."""
    if not any(row.how == "parameter" for row in scene.bindings(name)):
        return False
    given = _given(scene, name)
    return not given or any(_binds(scene, item, call) for item in given)


def targets(loop: ast.For) -> frozenset[str]:
    """The names that a for-loop binds."""
    return frozenset(node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name))


def moves(scene: Scene, loop: ast.For) -> list[ast.Call]:
    """Calls in a loop that move parts of its batch to the device."""
    names, found = targets(loop), list[ast.Call]()
    inner = set(names)
    for node in scene.inside(loop):
        if isinstance(node, ast.comprehension) and _mentions(node.iter, names):
            inner.update(n.id for n in ast.walk(node.target) if isinstance(n, ast.Name))
    for statement in loop.body:
        for node in scene.inside(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                base = _base(node.func.value)
                if base in inner and goes_to_device(scene, node):
                    found.append(node)
    return found


def _base(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _mentions(node: ast.AST, names: frozenset[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))


def used_in_loop(scene: Scene, call: ast.Call, names: frozenset[str]) -> bool:
    """Whether a loader made outside a loop is used, or iterated over, inside one."""
    for name in names:
        head = name.partition(".")[0]
        for node in scene.all(ast.Name):
            if node.id != head or isinstance(node.ctx, ast.Store):
                continue
            whole = _whole(scene, node)
            if scene.dotted(whole) != name:
                continue
            loop = _repeats(scene, whole)
            if loop is not None and not scene.within(call, loop) and _same(scene, node, call):
                return True
    return False


def _same(scene: Scene, node: ast.Name, call: ast.Call) -> bool:
    """Whether a name stands for this very loader: bound to it here, a parameter that is given it,
    or an attribute of the same object."""
    if node.id in ("self", "cls"):
        return scene.class_of(node) is scene.class_of(call)
    if isinstance(scene.parent(node), ast.Attribute):
        return True
    return _binds(scene, node, call) or any(
        _binds(scene, given, call) for given in _given(scene, node)
    )


def _binds(scene: Scene, name: ast.Name, call: ast.Call) -> bool:
    return any(
        row.how == "assign" and scene.within(call, row.statement) for row in scene.bindings(name)
    )


def _given(scene: Scene, name: ast.Name) -> list[ast.Name]:
    """The names that this file's calls pass for a parameter."""
    rows = scene.bindings(name)
    function = scene.function(rows[0].node) if rows and rows[0].how == "parameter" else None
    if function is None:
        return []
    given = (passed(scene, use, function, name.id) for use in callers(scene, function))
    return [item for item in given if isinstance(item, ast.Name)]


def _whole(scene: Scene, node: ast.AST) -> ast.AST:
    while isinstance(up := scene.parent(node), ast.Attribute):
        node = up
    return node


def _repeats(scene: Scene, node: ast.AST) -> ast.AST | None:
    """The loop that evaluates an expression time and again; a for-loop's own `iter` is not."""
    child = node
    for up in scene.ancestors(node):
        if isinstance(up, SCOPES):
            return None
        if isinstance(up, LOOPS) and (child in up.body or isinstance(up, ast.While)):
            return up
        child = up
    return None


def literal_int(scene: Scene, node: ast.expr | None) -> int | None:
    """A whole number that is written down, else None."""
    value = scene.literal(node)
    return value if isinstance(value, int) and value is not MISSING else None
