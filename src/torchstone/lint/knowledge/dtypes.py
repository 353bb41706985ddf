"""Which expressions are known to be integer, boolean or complex tensors of torch."""

from __future__ import annotations

import ast

from torchstone.sources.scene import Scene

_INTEGERS = frozenset(("int64", "int32", "int16", "int8", "uint8", "bool"))
_COMPLEX = frozenset(("complex32", "complex64", "complex128"))
_INDEX_FUNCTIONS = frozenset(
    f"torch.{name}"
    for name in (
        "argmax argmin argsort randint randint_like randperm nonzero bincount searchsorted bucketize "
        "count_nonzero argwhere"
    ).split()
)
_BOOLEAN_FUNCTIONS = frozenset(
    f"torch.{name}"
    for name in (
        "eq ne gt ge lt le greater less isnan isinf isfinite isclose logical_and logical_or "
        "logical_not logical_xor"
    ).split()
)
_INDEX_METHODS = frozenset("argmax argmin argsort nonzero".split())
_KEEPING = frozenset(
    "view reshape transpose permute contiguous flatten squeeze unsqueeze expand expand_as repeat "
    "clone detach cpu cuda t view_as masked_select index_select gather roll flip abs".split()
)
_COMPLEX_FUNCTIONS = frozenset(
    f"torch.fft.{name}"
    for name in ("fft fft2 fftn rfft rfft2 rfftn ifft ifft2 ifftn ihfft".split())
) | frozenset(("torch.complex", "torch.polar", "torch.view_as_complex", "torch.linalg.eigvals"))
INVERSE_TRANSFORMS = frozenset(f"torch.fft.{name}" for name in ("ifft", "ifft2", "ifftn"))
_COMPLEX_WORDS = ("fft", "complex", "torch.polar", "eigvals", "cfloat", "cdouble")
COMPLEX_IDENTIFIERS = (
    *("fft fft2 fftn rfft rfft2 rfftn ifft ifft2 ifftn ihfft complex polar eigvals".split()),
    *("view_as_complex complex32 complex64 complex128 cfloat cdouble is_complex stft".split()),
)
_DEPTH = 6


def integer_dtype(scene: Scene, node: ast.AST | None, depth: int = _DEPTH) -> str:
    """`int64`, `bool`, … when a node is plainly an integer tensor of torch, else ""."""
    if node is None or not depth:
        return ""
    known = scene.dtype(node)
    if known:
        return known if known in _INTEGERS else ""
    if isinstance(node, ast.Name):
        value = scene.value(node)
        if value is None:
            return "int64" if _is_second_output(scene, node) else ""
        if _is_conditional(scene, value, node):
            return ""
        return integer_dtype(scene, value, depth - 1)
    if isinstance(node, ast.Attribute) and node.attr == "indices":
        made = scene.value(node.value) if isinstance(node.value, ast.Name) else node.value
        return "int64" if made is not None and _gives_indices(scene, made) else ""
    if isinstance(node, ast.Subscript):
        return integer_dtype(scene, node.value, depth - 1)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        if isinstance(node.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot)):
            return ""
        sides = (node.left, node.comparators[0])
        return "bool" if any(integer_dtype(scene, side, depth - 1) for side in sides) else ""
    if isinstance(node, ast.BinOp):
        return _of_operation(scene, node, depth)
    if isinstance(node, ast.Call):
        return _of_call(scene, node, depth)
    return ""


def _is_second_output(scene: Scene, node: ast.Name) -> bool:
    """Whether a name is `indices` of `values, indices = x.topk(k)` and the like."""
    at = (node.lineno, node.col_offset)
    rows = [row for row in scene.bindings(node) if row.position < at]
    if not rows or not isinstance(statement := rows[-1].statement, ast.Assign):
        return False
    target = statement.targets[0]
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return False
    return (
        target.elts[1] is rows[-1].node
        and _gives_indices(scene, statement.value)
        and not _is_conditional(scene, statement.value, node)
    )


def _gives_indices(scene: Scene, node: ast.expr) -> bool:
    """Whether a call of torch gives values together with their indices."""
    if not isinstance(node, ast.Call):
        return False
    full, method = scene.qualified(node.func), scene.method(node)
    if full.startswith("torch.") and full.count(".") == 1:
        name, given = full[6:], node.args[1:]
    else:
        name, given = method, node.args
    if name in ("topk", "kthvalue"):
        return True
    if name == "sort":
        return scene.keyword(node, "axis") is None
    by_dim = bool(given) or scene.keyword(node, "dim") is not None
    return name in ("max", "min", "median", "mode") and by_dim


def _is_conditional(scene: Scene, value: ast.expr, node: ast.Name) -> bool:
    """Whether the binding that is read stands under a condition that the reader does not."""
    around = set(scene.ancestors(node))
    return any(
        up not in around
        for up in scene.ancestors(value)
        if isinstance(up, (ast.If, ast.IfExp, ast.Try, ast.For, ast.While))
    )


def _of_operation(scene: Scene, node: ast.BinOp, depth: int) -> str:
    if not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)):
        return ""
    left, right = (integer_dtype(scene, side, depth - 1) for side in (node.left, node.right))
    if left and (right or _is_int(scene, node.right)):
        return left
    return right if right and _is_int(scene, node.left) else ""


def _is_int(scene: Scene, node: ast.expr) -> bool:
    value = scene.literal(node)
    return isinstance(value, int)


def _of_call(scene: Scene, call: ast.Call, depth: int) -> str:
    if scene.has_star(call) or scene.keyword(call, "dtype") is not None:
        return ""  # a dtype that is given and could be read was answered by `scene.dtype`
    full, method = scene.qualified(call.func), scene.method(call)
    if full in _INDEX_FUNCTIONS:
        return "int64"
    if full in _BOOLEAN_FUNCTIONS:
        return "bool"
    if full in ("torch.tensor", "torch.as_tensor") and call.args:
        return _of_literal(call.args[0])
    if full == "torch.arange":
        return "int64" if all(_counts(scene, item) for item in call.args) else ""
    if method in _INDEX_METHODS and scene.keyword(call, "dim") is not None:
        return "int64"  # numpy says axis
    if method in _KEEPING:
        return integer_dtype(scene, scene.receiver(call), depth - 1)
    return ""


def _counts(scene: Scene, node: ast.expr) -> bool:
    """Whether an argument of arange is plainly a whole number."""
    if isinstance(node, ast.Call):
        return scene.dotted(node.func) in ("len", "int") or scene.method(node) in ("size", "numel")
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    return isinstance(scene.literal(node), int)


def _of_literal(node: ast.expr) -> str:
    """The type that `torch.tensor` gives to a list that is written down."""
    kinds: set[type] = set()
    stack: list[ast.expr] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, (ast.List, ast.Tuple)):
            stack.extend(item.elts)
        elif isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.USub):
            stack.append(item.operand)
        elif isinstance(item, ast.Constant):
            kinds.add(type(item.value))
        else:
            return ""
    if kinds == {bool}:
        return "bool"
    return "int64" if kinds and kinds <= {int, bool} else ""


def speaks_of_complex(scene: Scene) -> bool:
    """Whether the file can make complex tensors at all; cheap, and asked first."""
    found = scene.cache.get("speaks of complex")
    if found is None:
        found = scene.cache["speaks of complex"] = any(
            word in scene.source.text for word in _COMPLEX_WORDS
        )
    return bool(found)


def complex_source(scene: Scene, node: ast.AST | None, depth: int = _DEPTH) -> str:
    """What made a complex tensor (`torch.fft.fft`), when a node is plainly one; else ""."""
    if node is None or not depth:
        return ""
    if isinstance(node, ast.Name):
        value = scene.value(node)
        if value is None or _is_conditional(scene, value, node):
            return ""
        return complex_source(scene, value, depth - 1)
    if isinstance(node, ast.Subscript):
        return complex_source(scene, node.value, depth - 1)
    if isinstance(node, ast.BinOp):
        return complex_source(scene, node.left, depth - 1) or complex_source(
            scene, node.right, depth - 1
        )
    if not isinstance(node, ast.Call):
        return ""
    full = scene.qualified(node.func)
    if full in _COMPLEX_FUNCTIONS:
        return full
    if full == "torch.stft":
        given = scene.literal(scene.keyword(node, "return_complex"))
        return full if given is True else ""
    known = scene.dtype(node)
    if known:
        return known if known in _COMPLEX else ""
    if scene.method(node) in _KEEPING - {"abs"}:
        return complex_source(scene, scene.receiver(node), depth - 1)
    return ""
