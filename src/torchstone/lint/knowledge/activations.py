"""Which activation a value went through last: softmax, log_softmax or sigmoid."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.lint.knowledge.flow import functions, made, own_nodes, parameters
from torchstone.lint.knowledge.layers import nn_class
from torchstone.sources.scene import Scene

_FUNCTIONS = {
    f"{home}.{name}": kind
    for home in ("torch", "torch.nn.functional", "torch.special")
    for name, kind in (
        ("softmax", "softmax"),
        ("log_softmax", "log_softmax"),
        ("sigmoid", "sigmoid"),
        ("expit", "sigmoid"),
        ("logsigmoid", "logsigmoid"),
    )
}
_METHODS = {
    "softmax": "softmax",
    "log_softmax": "log_softmax",
    "sigmoid": "sigmoid",
    "sigmoid_": "sigmoid",
}
_CLASSES = {
    "Softmax": "softmax",
    "Softmax2d": "softmax",
    "LogSoftmax": "log_softmax",
    "Sigmoid": "sigmoid",
    "LogSigmoid": "logsigmoid",
}
_SHAPES = frozenset(
    "view reshape squeeze unsqueeze flatten permute transpose contiguous float double half to cuda "
    "cpu clone view_as t movedim swapaxes expand".split()
)
_DEPTH = 7


def last_activation(scene: Scene, node: ast.AST | None, depth: int = _DEPTH) -> str:
    """`softmax`, `log_softmax`, `sigmoid` or `logsigmoid` when a value came out of one, else ""."""
    if node is None or not depth:
        return ""
    if isinstance(node, ast.Name):
        source = made(scene, node, 1)
        return last_activation(scene, source, depth - 1) if source is not node else ""
    if isinstance(node, ast.Attribute):
        return ""
    if not isinstance(node, ast.Call):
        return ""
    full = scene.qualified(node.func)
    if full in _FUNCTIONS:
        return _FUNCTIONS[full]
    method = scene.method(node)
    on_self = scene.dotted(scene.receiver(node)) == "self"
    if method in _METHODS and not on_self:
        return _METHODS[method] if not _is_module(scene, node.func) else ""
    if method in _SHAPES and not on_self:
        return last_activation(scene, scene.receiver(node), depth - 1)
    if method == "forward":
        return model_activation(scene, scene.receiver(node), depth - 1)
    return model_activation(scene, node.func, depth - 1)


def _is_module(scene: Scene, func: ast.AST) -> bool:
    """Whether `a.softmax(x)` calls a module that happens to be an attribute of `a`."""
    return isinstance(func, ast.Attribute) and scene.is_model(func.value)


def model_activation(scene: Scene, node: ast.AST | None, depth: int = _DEPTH) -> str:
    """The activation that a module ends in."""
    if depth <= 0:
        return ""
    source = made(scene, node)
    if not isinstance(source, ast.Call):
        return ""
    name = nn_class(scene, source.func)
    if name in _CLASSES:
        return _CLASSES[name]
    if name == "Sequential":
        last = _last_layer(source)
        return model_activation(scene, last, depth - 1) if last is not None else ""
    if name in ("DataParallel", "DistributedDataParallel") or scene.qualified(source.func).endswith(
        ".DistributedDataParallel"
    ):
        return model_activation(scene, source.args[0], depth - 1) if source.args else ""
    if name:
        return ""
    found = scene.project.class_named(scene, source.func, scene.qualified(source.func))
    if found is None or not found[0].is_module_class(found[1]):
        return ""
    return _class_activation(found[0], found[1], depth - 1)


def _last_layer(sequential: ast.Call) -> ast.expr | None:
    if not sequential.args or sequential.keywords:
        return None
    last = sequential.args[-1]
    if isinstance(last, ast.Call) and isinstance(last.func, ast.Name):
        if last.func.id == "OrderedDict" and last.args and isinstance(last.args[0], ast.List):
            pairs = last.args[0].elts
            last = pairs[-1] if pairs else last
            if isinstance(last, ast.Tuple) and len(last.elts) == 2:
                return last.elts[1]
            return None
    return None if isinstance(last, ast.Starred) else last


def _class_activation(scene: Scene, owner: ast.ClassDef, depth: int) -> str:
    """What every return of a class's `forward` went through; "" when they differ."""
    kinds: set[str] = set()
    for function in functions(scene).get("forward", ()):
        if scene.parent(function) is owner:
            for item in own_nodes(function):
                if isinstance(item, ast.Return) and item.value is not None:
                    kinds.add(last_activation(scene, item.value, depth))
    return kinds.pop() if len(kinds) == 1 else ""


def called_loss(scene: Scene, call: ast.Call) -> str:
    """`CrossEntropyLoss` for `criterion(x, y)` when `criterion` was made from that class, or the
    function's own name for `F.cross_entropy(x, y)`; else ""."""
    full = scene.qualified(call.func)
    if full.startswith("torch.nn.functional."):
        return full.rpartition(".")[2]
    if full:
        return ""
    source = call.func if isinstance(call.func, ast.Call) else made(scene, call.func)
    return nn_class(scene, source.func) if isinstance(source, ast.Call) else ""


def loss_calls(
    scene: Scene, classes: frozenset[str], names: frozenset[str]
) -> Iterator[tuple[ast.Call, str]]:
    """Calls of torch.nn.functional losses, and of objects made from loss classes, with the name."""
    for name in names:
        for call in scene.calls.get(name, ()):
            if scene.qualified(call.func) == f"torch.nn.functional.{name}":
                yield call, name
    bound: set[str] = set()
    for name in classes:
        for made_here in scene.calls.get(name, ()):
            if nn_class(scene, made_here.func) != name:
                continue
            up = scene.parent(made_here)
            if isinstance(up, ast.Call) and up.func is made_here:
                yield up, name
            statement = scene.statement(made_here)
            if isinstance(statement, ast.Assign):
                bound.update(scene.last_name(target) for target in statement.targets)
    bound.discard("")
    for local in bound | _handed_on(scene, bound):
        for call in scene.calls.get(local, ()):
            name = called_loss(scene, call)
            if name in classes:
                yield call, name


def _handed_on(scene: Scene, names: set[str]) -> set[str]:
    """The parameters of this file's functions that receive one of these names."""
    found: set[str] = set()
    if not names:
        return found
    for function_name, items in functions(scene).items():
        for call in scene.calls.get(function_name, ()) if len(items) == 1 else ():
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            if any(scene.last_name(item) in names for item in given):
                found.update(parameters(items[0]))
    return found
