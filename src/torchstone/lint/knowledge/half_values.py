"""Which values are half precision where they stand, and which numbers are written down."""

from __future__ import annotations

import ast

from torchstone.core.pattern import pattern
from torchstone.lint.knowledge.autocast_ops import is_lowered, runs_in_fp32
from torchstone.sources.regions import Region
from torchstone.sources.scene import Scene

HALF_WORDS = ("float16", "bfloat16", "half", "autocast")
"""A file that holds none of these says nothing of half precision."""
# what keeps the type of its input, autocast or not
_KEEPING = frozenset(
    "view reshape transpose permute contiguous flatten squeeze unsqueeze expand expand_as repeat "
    "clone relu sigmoid tanh gelu silu leaky_relu dropout masked_fill clamp chunk split view_as t "
    "movedim swapaxes abs".split()
)
_LAYERS = pattern(r"torch\.nn\.(?:Linear|Conv\d?d|ConvTranspose\d?d)$")


def speaks_of_half(scene: Scene) -> bool:
    """Whether half precision is mentioned in the file at all; cheap, and asked first."""
    found = scene.cache.get("speaks of half")
    if found is None:
        found = scene.cache["speaks of half"] = any(
            word in scene.source.text for word in HALF_WORDS
        )
    return bool(found)


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
    dtype = scene.dtype(tensor) or _left_autocast(scene, tensor, call)
    if dtype not in ("float16", "bfloat16"):
        return None
    region = scene.region(call)
    cast = region.autocast
    function = scene.qualified(call.func) or scene.method(call)
    if cast is not None and (cast.dtype == "float32" or runs_in_fp32(function, cast.device)):
        return None
    return dtype, region


def _left_autocast(scene: Scene, tensor: ast.expr | None, call: ast.Call) -> str:
    """The half type of a value that an autocast region of this function made, at a place after it."""
    value = scene.value(tensor) if isinstance(tensor, ast.Name) else None
    if value is None or scene.scope(value) is not scene.scope(call):
        return ""
    cast = scene.lexical_region(value).autocast
    if cast is None or not cast.certain or scene.lexical_region(call).autocast is not None:
        return ""
    half = cast.dtype in ("float16", "bfloat16") and _is_lowered_value(scene, value)
    return cast.dtype if half else ""


def half_here(scene: Scene, node: ast.AST | None) -> tuple[str, bool]:
    """The half type of a value, and whether that is certain: cast by hand, or made by an operator
    that the autocast region around it lowers. ("", False) when it is not half as far as is known.
    """
    known = scene.dtype(node) if speaks_of_half(scene) else ""
    if known or node is None:
        half = known in ("float16", "bfloat16") and not _is_cast_up(scene, node)
        return (known, True) if half else ("", False)
    if not _is_lowered_value(scene, node):
        return "", False
    cast = scene.region(node).autocast
    if cast is not None and cast.dtype in ("float16", "bfloat16"):
        return cast.dtype, cast.certain
    return "", False


def _is_cast_up(scene: Scene, node: ast.AST | None) -> bool:
    """Whether a value comes out of an operator that the autocast region runs in float32."""
    source = scene.value(node) if isinstance(node, ast.Name) else node
    if not isinstance(source, ast.Call):
        return False
    function = scene.qualified(source.func) or scene.method(source)
    if not runs_in_fp32(function, "cuda"):
        return False
    cast = scene.region(source).autocast
    return cast is not None and runs_in_fp32(function, cast.device)


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
