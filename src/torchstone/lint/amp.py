"""What the precision rules ask about a file: its scalers, its autocasts, whether it trains."""

from __future__ import annotations

import ast
import re

from torchstone.sources import training
from torchstone.sources.regions import Autocast, autocast_call
from torchstone.sources.scene import Scene

_SCALER_NAME = re.compile(r"(?:^|_)(?:grad_?|loss_?|amp_?)?scaler(?:_?\w)?$", re.IGNORECASE)
_TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|testing)/|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py$"
)
_PRECISION_WORD = re.compile(r"fp16|bf16|float16|half|precision|autocast|amp\b|mixed", re.I)
FUNCTION_BASES = frozenset(
    ("torch.autograd.Function", "torch.autograd.function.Function")
    + ("torch.autograd.function.InplaceFunction", "torch.autograd.function.NestedIOFunction")
)


def in_tests(scene: Scene) -> bool:
    """Whether the file is a test: there, odd precision is usually the point."""
    return bool(_TEST_PATH.search(scene.path.replace("\\", "/")))


def is_scaler(scene: Scene, node: ast.AST | None) -> bool:
    """Whether an expression is a GradScaler as far as its making or its name tells."""
    if node is None:
        return False
    made = scene.origin(node)
    if isinstance(made, ast.Call):
        return scene.last_name(made.func).endswith("GradScaler")
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


def exclusive(scene: Scene, one: ast.AST, other: ast.AST) -> bool:
    """Whether two places stand in different arms of one `if`, so that only one of them runs."""
    arms: dict[ast.AST, ast.AST] = {}
    child = one
    for up in scene.ancestors(one):
        if isinstance(up, ast.If):
            arms[up] = child
        child = up
    child = other
    for up in scene.ancestors(other):
        if isinstance(up, ast.If) and up in arms:
            return (arms[up] in up.orelse) != (child in up.orelse)
        child = up
    return False


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


def before(one: ast.AST, other: ast.AST) -> bool:
    """Whether one node is written before another."""
    return _place(one) < _place(other)


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def torch_name(scene: Scene) -> str:
    """The name under which the file can say `torch`, or ""."""
    return next((name for name, full in scene.imports.aliases.items() if full == "torch"), "")
