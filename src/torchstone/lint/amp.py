"""What the precision rules ask about a file: its scalers, its autocasts, whether it trains."""

from __future__ import annotations

import ast
import re

from torchstone.lint.autocast_ops import is_lowered, runs_in_fp32
from torchstone.sources import training
from torchstone.sources.regions import Autocast, Region, autocast_call
from torchstone.sources.scene import LOOPS, SCOPES, Scene

_SCALER_NAME = re.compile(r"(?:^|_)(?:grad_?|loss_?|amp_?)?scaler(?:_?\w)?$", re.IGNORECASE)
_TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|testing)/|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py$"
)
_HALF_WORDS = ("float16", ".half", "autocast")
_PRECISION_WORD = re.compile(r"fp16|bf16|float16|half|precision|autocast|amp\b|mixed", re.I)
FUNCTION_BASES = frozenset(
    ("torch.autograd.Function", "torch.autograd.function.Function")
    + ("torch.autograd.function.InplaceFunction", "torch.autograd.function.NestedIOFunction")
)


def in_tests(scene: Scene) -> bool:
    """Whether the file is a test: there, odd precision is usually the point."""
    return bool(_TEST_PATH.search(scene.path.replace("\\", "/")))


def speaks_of_half(scene: Scene) -> bool:
    """Whether half precision is mentioned in the file at all; cheap, and asked first."""
    found = scene.cache.get("speaks of half")
    if found is None:
        found = scene.cache["speaks of half"] = any(
            word in scene.source.text for word in _HALF_WORDS
        )
    return bool(found)


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


def together(scene: Scene, one: ast.AST, other: ast.AST) -> bool:
    """Whether two places stand in one function (or at module level) and may both run in one pass."""
    return scene.scope(one) is scene.scope(other) and not exclusive(scene, one, other)


def loop_of(scene: Scene, node: ast.AST) -> ast.AST | None:
    """The innermost loop around a node within its function."""
    for up in scene.ancestors(node):
        if isinstance(up, LOOPS):
            return up
        if isinstance(up, SCOPES):
            return None
    return None


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


def before(one: ast.AST, other: ast.AST) -> bool:
    """Whether one node is written before another."""
    return _place(one) < _place(other)


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def torch_name(scene: Scene) -> str:
    """The name under which the file can say `torch`, or ""."""
    return next((name for name, full in scene.imports.aliases.items() if full == "torch"), "")


def subject(scene: Scene, call: ast.Call) -> ast.expr | None:
    """The tensor that a function or method of torch works on: `x` of `torch.sum(x)`, `x.sum()`."""
    if scene.method(call):
        return scene.receiver(call)
    if scene.qualified(call.func).startswith("torch."):
        return scene.argument(call, 0, "input")
    return None


def half_outside_autocast(scene: Scene, call: ast.Call) -> tuple[str, Region] | None:
    """The half type that a call works on, unless autocast casts it up first; and the region."""
    if not speaks_of_half(scene):
        return None
    tensor = subject(scene, call)
    dtype = scene.dtype(tensor)
    if dtype not in ("float16", "bfloat16"):
        return None
    region = scene.region(call)
    cast = region.autocast
    function = scene.qualified(call.func) or scene.method(call)
    if cast is not None and (cast.dtype == "float32" or runs_in_fp32(function, cast.device)):
        return None
    return dtype, region


# what keeps the type of its input, autocast or not
_KEEPING = frozenset(
    "view reshape transpose permute contiguous flatten squeeze unsqueeze expand expand_as repeat "
    "clone relu sigmoid tanh gelu silu leaky_relu dropout masked_fill clamp chunk split mul div add "
    "sub view_as t movedim swapaxes abs".split()
)
_LAYERS = re.compile(r"torch\.nn\.(?:Linear|Conv\d?d|ConvTranspose\d?d|Bilinear|LSTM|GRU)$")


def half_here(scene: Scene, node: ast.AST | None) -> tuple[str, bool]:
    """The half type of a value, and whether that is certain: cast by hand, or made by an operator
    that the autocast region around it lowers. ("", False) when it is not half as far as is known.
    """
    known = scene.dtype(node) if speaks_of_half(scene) else ""
    if known or node is None:
        return (known, True) if known in ("float16", "bfloat16") else ("", False)
    if not _is_lowered_value(scene, node):
        return "", False
    cast = scene.region(node).autocast
    if cast is not None and cast.dtype in ("float16", "bfloat16"):
        return cast.dtype, cast.certain
    return "", False


def _is_lowered_value(scene: Scene, node: ast.AST | None, depth: int = 6) -> bool:
    if node is None or not depth:
        return False
    if isinstance(node, ast.Name):
        return _is_lowered_value(scene, scene.value(node), depth - 1)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.MatMult):
            return True
        if is_number(scene, node.right):
            return _is_lowered_value(scene, node.left, depth - 1)
        return is_number(scene, node.left) and _is_lowered_value(scene, node.right, depth - 1)
    if isinstance(node, ast.Call):
        full, method = scene.qualified(node.func), scene.method(node)
        if full.startswith("torch.") and is_lowered(full):
            return True
        if method in ("matmul", "bmm", "mm"):
            return True
        if (method or full.rpartition(".")[2]) in _KEEPING:
            return _is_lowered_value(scene, subject(scene, node), depth - 1)
        made = scene.origin(node.func)
        return isinstance(made, ast.Call) and bool(_LAYERS.match(scene.qualified(made.func)))
    return False


def is_number(scene: Scene, node: ast.AST | None, depth: int = 4) -> bool:
    """Whether an expression is a plain number, not a tensor, as far as the file tells."""
    if node is None or not depth:
        return False
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return is_number(scene, node.operand, depth - 1)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow) and isinstance(scene.literal(node.right), float):
            return not isinstance(node.left, ast.Call)
        return all(is_number(scene, side, depth - 1) for side in (node.left, node.right))
    if isinstance(node, ast.Call):
        full = scene.qualified(node.func)
        return full.startswith("math.") or full in ("numpy.sqrt", "float", "int")
    if isinstance(node, (ast.Name, ast.Attribute)):
        made = scene.origin(node)
        return made is not node and is_number(scene, made, depth - 1)
    return False


def number(scene: Scene, node: ast.AST | None) -> float | None:
    """The value of a number that is written down (`-1e9`, `float("-1e9")`), else None."""
    if isinstance(node, ast.Call) and scene.dotted(node.func) == "float" and len(node.args) == 1:
        text = scene.literal(node.args[0])
        try:
            return float(text) if isinstance(text, str) else None
        except ValueError:
            return None
    value = scene.literal(node)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
