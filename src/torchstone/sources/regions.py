"""Which autocast, no_grad and inference_mode regions a place is in.

A region is opened by a with-statement or a decorator, or reaches a function of the project because
every call of that function stands inside one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from torchstone.sources import values
from torchstone.sources.scene import DATASET_BASES, Scene
from torchstone.sources.states import Autocast, Region
from torchstone.sources.targets import Target, function_named, target_of
from torchstone.sources.tree import below

__all__ = ["DATASET_BASES", "Autocast", "Region", "autocast_call", "lexical", "region_of"]
AUTOCASTS = {
    "torch.autocast": "",
    "torch.amp.autocast": "",
    "torch.amp.autocast_mode.autocast": "",
    "torch.cuda.amp.autocast": "cuda",
    "torch.cuda.amp.autocast_mode.autocast": "cuda",
    "torch.cpu.amp.autocast": "cpu",
    "torch.npu.amp.autocast": "npu",
}
NO_GRAD = frozenset(("torch.no_grad", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad"))
INFERENCE = frozenset(("torch.inference_mode", "torch.autograd.inference_mode"))
ENABLE_GRAD = frozenset(("torch.enable_grad", "torch.autograd.enable_grad"))
SET_GRAD = frozenset(("torch.set_grad_enabled", "torch.autograd.set_grad_enabled"))
DEFAULT_DTYPES = {
    "cuda": "float16",
    "cpu": "bfloat16",
    "xpu": "float16",
    "npu": "float16",
    "mps": "float16",
}


def _autocast(scene: Scene, node: ast.AST | None, depth: int = 4) -> Autocast | None:
    if node is None or not depth:
        return None
    if isinstance(node, ast.IfExp):
        either = _autocast(scene, node.body, depth - 1) or _autocast(scene, node.orelse, depth - 1)
        return replace(either, certain=False) if either else None
    if isinstance(node, ast.Name):
        for binding in values.bindings(scene, node):
            if binding.how == "assign" and binding.value is not node:
                found = _autocast(scene, binding.value, depth - 1)
                if found:
                    several = len(values.bindings(scene, node)) > 1
                    return replace(found, certain=found.certain and not several)
        return None
    if isinstance(node, ast.Attribute):
        made = values.origin(scene, node)
        return _autocast(scene, made, depth - 1) if made is not node else None
    if not isinstance(node, ast.Call):
        return None
    full = scene.qualified(node.func)
    if full == "functools.partial":
        return _autocast_from(scene, node.args[0], node, 1) if node.args else None
    found = _autocast_from(scene, node.func, node, 0)
    if found is None and isinstance(node.func, ast.Name):
        found = _autocast(scene, node.func, depth - 1)
    return found or _autocast_of_project(scene, node, depth)


def _autocast_of_project(scene: Scene, call: ast.Call, depth: int) -> Autocast | None:
    """The region that a function of the project opens: a context manager, or one it returns."""
    target = _opener(scene, call)
    if target is None:
        return None
    home, function = target
    if _is_context_manager(home, function):
        region = _where_it_yields(home, function)
        return _OFF if region.autocast_off else region.autocast
    found = [_autocast(home, value, depth - 1) for value in _returned(function)]
    first = next((item for item in found if item is not None), None)
    if first is None or first is _OFF:
        return first
    return replace(first, certain=first.certain and len(found) == 1)


def _opener(scene: Scene, call: ast.Call) -> Target | None:
    """The function of the project that makes a context; asked once for each place."""
    known: dict[ast.AST, Target | None] = scene.cache.setdefault("openers", {})
    if call not in known:
        known[call] = target_of(scene, call)
    return known[call]


def _is_context_manager(scene: Scene, function: ast.AST) -> bool:
    decorators: list[ast.expr] = getattr(function, "decorator_list", [])
    return any(scene.last_name(item).endswith("contextmanager") for item in decorators)


def _where_it_yields(scene: Scene, function: ast.AST) -> Region:
    """What holds where a context manager hands over to the block of its `with`."""
    places = [lexical(scene, n)[0] for n in scene.inside(function) if isinstance(n, ast.Yield)]
    agree = bool(places) and all(place == places[0] for place in places)
    return places[0] if agree else Region()


def _returned(function: ast.AST) -> list[ast.expr]:
    return [
        node.value
        for node in below(function)
        if isinstance(node, ast.Return) and node.value is not None
    ]


def _autocast_from(scene: Scene, func: ast.expr, call: ast.Call, skipped: int) -> Autocast | None:
    full = scene.qualified(func)
    known = full in AUTOCASTS
    if not known and not (scene.method(func) == "autocast" or full.endswith(".autocast")):
        return None
    device = AUTOCASTS.get(full, "")
    if known and not device:
        given = scene.argument(call, skipped, "device_type")
        literal = scene.literal(given)
        device = literal.partition(":")[0] if isinstance(literal, str) else ""
    dtype_given = scene.keyword(call, "dtype")
    if dtype_given is None and full in ("torch.autocast", "torch.amp.autocast"):
        dtype_given = scene.argument(call, skipped + 1)
    dtype = scene.dtype_literal(dtype_given)
    if dtype_given is None and known:
        dtype = DEFAULT_DTYPES.get(device, "")
    enabled = scene.keyword(call, "enabled")
    if enabled is None and device and full.startswith(("torch.cuda.", "torch.cpu.")):
        enabled = scene.argument(call, skipped)
    switched = scene.literal(enabled) if enabled is not None else True
    if switched is False:
        return _OFF
    return Autocast(device, dtype, call, certain=switched is True and known)


_OFF = Autocast("", "off")


def autocast_call(scene: Scene, call: ast.Call) -> Autocast | None:
    """The region that an `autocast(...)` call opens; None for what opens none or switches it off."""
    found = _autocast(scene, call)
    return None if found is _OFF else found


def lexical(scene: Scene, node: ast.AST) -> tuple[Region, ast.AST | None]:
    """The region from a node's own function, and that function (None at module level)."""
    region = Region()
    cast_known = grad_known = False
    child = node
    for up in scene.ancestors(node):
        contexts: list[ast.expr] = []
        if isinstance(up, (ast.With, ast.AsyncWith)) and child in up.body:
            contexts = [item.context_expr for item in reversed(up.items)]
        elif isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)) and child in up.body:
            contexts = list(up.decorator_list)
        for context in contexts:
            if not cast_known and (found := _autocast(scene, context)):
                cast_known = True
                off = found is _OFF
                region = replace(region, autocast=None if off else found, autocast_off=off)
            grad = None if grad_known else _grad(scene, context)
            if grad:
                grad_known = True
                region = replace(
                    region, no_grad=grad == "no_grad", inference_mode=grad == "inference"
                )
        child = up
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not grad_known and _switched_off(scene, up, node):
                region = replace(region, no_grad=True)
            return region, up
    if not grad_known and _switched_off(scene, None, node):
        region = replace(region, no_grad=True)
    return region, None


def _grad(scene: Scene, context: ast.expr) -> str:
    func = context.func if isinstance(context, ast.Call) else context
    full = scene.qualified(func)
    if full in NO_GRAD:
        return "no_grad"
    if full in INFERENCE:
        mode = scene.argument(context, 0, "mode") if isinstance(context, ast.Call) else None
        # `inference_mode(False)` also switches gradients on, inside `no_grad` too
        return "enabled" if scene.literal(mode) is False else "inference"
    if full in ENABLE_GRAD:
        return "enabled"
    if full in SET_GRAD and isinstance(context, ast.Call):
        on = scene.literal(scene.argument(context, 0, "mode"))
        return "no_grad" if on is False else "enabled"
    return _grad_of_project(scene, context)


def _grad_of_project(scene: Scene, context: ast.expr) -> str:
    """The same for contexts and decorators that a function of the project makes."""
    if isinstance(context, ast.Call):
        target = _opener(scene, context)
        if target is None:
            return ""
        home, function = target
        if _is_context_manager(home, function):
            return _grad_name(_where_it_yields(home, function))
        found = {_grad(home, value) for value in _returned(function)}
        return found.pop() if len(found) == 1 else ""
    known: dict[ast.AST, str] = scene.cache.setdefault("decorators", {})
    if context not in known:
        target = function_named(scene, context)
        known[context] = _grad_name(_around_parameter(*target)) if target else ""
    return known[context]


def _around_parameter(scene: Scene, decorator: ast.AST) -> Region:
    """What holds where a decorator calls the function that it is given."""
    names = [item.arg for item in decorator.args.args[:1]]  # type: ignore[attr-defined]
    places = [
        lexical(scene, node)[0]
        for node in scene.inside(decorator)
        if isinstance(node, ast.Call) and scene.dotted(node.func) in names
    ]
    agree = bool(places) and all(_grad_name(item) == _grad_name(places[0]) for item in places)
    return places[0] if agree else Region()


def _grad_name(region: Region) -> str:
    return "inference" if region.inference_mode else "no_grad" if region.no_grad else ""


def _switched_off(scene: Scene, function: ast.AST | None, node: ast.AST) -> bool:
    """Whether `torch.set_grad_enabled(False)` is the last such statement before: of the function, or of
    the file where the function has none."""
    before = [
        call
        for call in scene.calls.get("set_grad_enabled", ())
        if scene.qualified(call.func) in SET_GRAD
        and isinstance(scene.parent(call), ast.Expr)
        and scene.function(call) in (function, None)
        and call.lineno < getattr(node, "lineno", 0)
    ]
    last = max(
        before, key=lambda call: (scene.function(call) is function, call.lineno), default=None
    )
    return last is not None and scene.literal(scene.argument(last, 0, "mode")) is False


def region_of(
    scene: Scene, node: ast.AST, around_calls: Callable[[ast.AST], Region | None]
) -> Region:
    """The region at a node; what its own function leaves open is asked of the callers."""
    region, function = lexical(scene, node)
    if function is None:
        return region
    open_cast = region.autocast is None and not region.autocast_off
    if not open_cast and region.without_grad:
        return region
    outer = around_calls(function)
    if outer is None:
        return region
    if open_cast:
        region = replace(
            region, autocast=outer.autocast, autocast_off=outer.autocast_off, via=outer.via
        )
    if not region.without_grad:
        region = replace(
            region, no_grad=outer.no_grad, inference_mode=outer.inference_mode, via=outer.via
        )
    return region
