"""What the precision rules ask about a file: its scalers, its autocasts, whether it trains."""

from __future__ import annotations

import ast
import re
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from torchstone.core.pattern import pattern
from torchstone.lint.knowledge.flow import exclusive
from torchstone.sources import training
from torchstone.sources.regions import Autocast, autocast_call
from torchstone.sources.scene import Scene
from torchstone.sources.values import count_before

_SCALER_NAME = pattern(r"(?:^|_)(?:grad_?|loss_?|amp_?)?scaler(?:_?\w)?$", re.IGNORECASE)
_PRECISION_WORD = pattern(r"fp16|bf16|float16|half|precision|autocast|amp\b|mixed", re.I)
FUNCTION_BASES = frozenset(
    ("torch.autograd.Function", "torch.autograd.function.Function")
    + ("torch.autograd.function.InplaceFunction", "torch.autograd.function.NestedIOFunction")
)


def is_scaler(scene: Scene, node: ast.AST | None) -> bool:
    """Whether an expression is a GradScaler as far as its making or its name tells."""
    if node is None:
        return False
    made = scene.origin(node)
    if isinstance(made, ast.Call):
        name = scene.last_name(made.func)
        if name.endswith("GradScaler") or name[:1].isupper():
            return name.endswith("GradScaler")
    return bool(_SCALER_NAME.search(scene.last_name(node)))


def scaler_calls(scene: Scene, method: str) -> list[ast.Call]:
    """Calls of one method of a GradScaler: `scale`, `unscale_`, `step`, `update`."""
    found: list[ast.Call] | None = scene.cache.get(("scaler", method))
    if found is None:
        found = [
            call
            for call in scene.calls.get(method, ())
            if scene.method(call) and is_scaler(scene, scene.receiver(call))
        ]
        scene.cache["scaler", method] = found
    return found


def is_scaler_call(scene: Scene, call: ast.Call, method: str) -> bool:
    """Whether a call is `scaler.method(…)`."""
    return scene.method(call) == method and is_scaler(scene, scene.receiver(call))


def _in_scope(scene: Scene, key: str, calls: Sequence[ast.Call], node: ast.AST) -> list[ast.Call]:
    """Those of the calls that stand in the function of a node, in order; kept under a key."""
    found: dict[ast.AST, list[ast.Call]] | None = scene.cache.get(("in scope", key))
    if found is None:
        found = defaultdict(list)
        for call in sorted(calls, key=_place):
            found[scene.scope(call)].append(call)
        scene.cache["in scope", key] = found
    return found.get(scene.scope(node), [])


def near(scene: Scene, node: ast.AST, method: str) -> Iterator[ast.Call]:
    """Calls of a scaler's method in the function of a node that may run in the same pass."""
    rows = _in_scope(scene, f"scaler {method}", scaler_calls(scene, method), node)
    return (item for item in rows if not exclusive(scene, item, node))


def near_after(scene: Scene, node: ast.AST, method: str) -> Iterator[ast.Call]:
    """The same, from a node onwards."""
    rows = _in_scope(scene, f"scaler {method}", scaler_calls(scene, method), node)
    start = bisect_right(rows, _place(node), key=_place)
    return (rows[i] for i in range(start, len(rows)) if not exclusive(scene, rows[i], node))


def last_backward(scene: Scene, node: ast.AST) -> ast.Call | None:
    """The backward call last before a node in its function that may run in the same pass."""
    rows = _in_scope(scene, "backward", training.backward_calls(scene), node)
    for i in range(bisect_left(rows, _place(node), key=_place) - 1, -1, -1):
        if not exclusive(scene, rows[i], node):
            return rows[i]
    return None


def reads_of(scene: Scene, name: ast.Name) -> list[ast.Name]:
    """Where a name is read after it is bound here and before it is bound again."""
    found: dict[tuple[ast.AST, str], list[ast.Name]] | None = scene.cache.get("reads")
    if found is None:
        found = scene.cache["reads"] = defaultdict(list)
        for item in scene.all(ast.Name):
            if isinstance(item.ctx, ast.Load):
                found[scene.scope(item), item.id].append(item)
        for reads in found.values():
            reads.sort(key=_place)
    rows = scene.bindings(name)
    later = count_before(rows, name) + 1
    end = rows[later].position if later < len(rows) else (sys.maxsize, 0)
    reads = found.get((scene.scope(name), name.id), [])
    start = bisect_right(reads, _place(name), key=_place)
    # the statement that binds a name anew reads it first: `x = f(x)`
    stop = bisect_left(reads, (end[0] + 1, 0), key=_place) if end[0] < sys.maxsize else len(reads)
    return [item for item in reads[start:stop] if scene.value(item) is _bound(scene, name)]


def _bound(scene: Scene, name: ast.Name) -> ast.AST | None:
    up = scene.parent(name)
    return up.value if isinstance(up, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) else None


def uses_of(scene: Scene, value: ast.expr) -> list[ast.expr]:
    """Where a value is used: where it is made, and where a name that it is bound to is read."""
    statement = scene.statement(value)
    targets = statement.targets if isinstance(statement, ast.Assign) else ()
    names = [target for target in targets if isinstance(target, ast.Name)]
    return [value, *(read for name in names for read in reads_of(scene, name))]


def calls_given(scene: Scene, value: ast.expr) -> list[ast.Call]:
    """The calls that get a value, or a part of it, in the expressions that use it."""
    found = []
    for child in uses_of(scene, value):
        node: ast.AST = child
        for up in scene.ancestors(child):
            if isinstance(up, ast.stmt):
                break
            if isinstance(up, ast.Call) and up.func is not node:
                found.append(up)
            node = up
    return found


def takers_of(scene: Scene, value: ast.expr, method: str) -> list[ast.Call]:
    """The calls of a method that get a value."""
    return [call for call in calls_given(scene, value) if scene.method(call) == method]


def is_backward(scene: Scene, call: ast.Call) -> bool:
    """Whether a call is a backward pass, not an autograd.Function's own."""
    found: set[ast.Call] | None = scene.cache.get("backward set")
    if found is None:
        found = scene.cache["backward set"] = set(training.backward_calls(scene))
    return call in found


def receivers(scene: Scene, method: str) -> set[str]:
    """The chains, as written, on which a method is called anywhere in the file; "" for what is more
    than names."""
    found: set[str] | None = scene.cache.get(("receivers", method))
    if found is None:
        calls = scene.calls.get(method, ())
        found = {scene.dotted(scene.receiver(call)) for call in calls}
        scene.cache["receivers", method] = found
    return found


def scaled(scene: Scene, call: ast.Call) -> ast.Call | None:
    """The `scaler.scale(…)` whose result a `backward()` call runs on."""
    receiver = scene.receiver(call)
    value = scene.value(receiver) if isinstance(receiver, ast.Name) else receiver
    if (
        isinstance(value, ast.Call)
        and scene.method(value) == "scale"
        and is_scaler(scene, scene.receiver(value))
    ):
        return value
    return None


def autocasts(scene: Scene) -> list[Autocast]:
    """The autocast regions that the file opens, whether they are entered or not."""
    found: list[Autocast] | None = scene.cache.get("autocasts")
    if found is None:
        calls = scene.calls.get("autocast", ())
        found = [cast for call in calls if (cast := autocast_call(scene, call)) is not None]
        scene.cache["autocasts"] = found
    return found


def uses_gpu_amp(scene: Scene) -> bool:
    """Whether the file opens an autocast that is not the CPU's, or makes or uses a GradScaler."""
    if any(cast.device != "cpu" for cast in autocasts(scene)):
        return True
    return "GradScaler" in scene.calls or bool(scaler_calls(scene, "scale"))


def trains(scene: Scene) -> bool:
    """Whether the file runs a backward pass or scales a loss."""
    return bool(training.backward_calls(scene)) or "GradScaler" in scene.calls


def together(scene: Scene, one: ast.AST, other: ast.AST) -> bool:
    """Whether two places stand in one function (or at module level) and may both run in one pass."""
    return scene.scope(one) is scene.scope(other) and not exclusive(scene, one, other)


def starts_its_line(scene: Scene, statement: ast.stmt) -> bool:
    """Whether nothing but indentation stands before a statement."""
    line, column, _, _ = scene.span(statement)
    return not scene.lines[line - 1][:column].strip()


def asks_precision(scene: Scene, node: ast.AST) -> bool:
    """Whether a node runs only when a test on a dtype or a precision flag says so."""
    child = node
    for up in scene.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test:
            for part in scene.inside(up.test):
                name = part.value if isinstance(part, ast.Constant) else scene.last_name(part)
                if isinstance(name, str) and (name == "dtype" or _PRECISION_WORD.search(name)):
                    return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False
        child = up
    return False


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def torch_name(scene: Scene) -> str:
    """The name under which the file can say `torch`, or ""."""
    return next((name for name, full in scene.imports.aliases.items() if full == "torch"), "")
