"""Where a value comes from, and what that tells: its dtype, or that it is a model."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from torchstone.core.pattern import pattern
from torchstone.sources.parsed_file import ParsedFile

DTYPES = {
    "float16": "float16", "half": "float16", "bfloat16": "bfloat16", "float32": "float32",
    "float": "float32", "float64": "float64", "double": "float64", "int64": "int64", "long": "int64",
    "int32": "int32", "int": "int32", "int16": "int16", "short": "int16", "int8": "int8",
    "uint8": "uint8", "bool": "bool", "complex64": "complex64", "cfloat": "complex64",
    "complex128": "complex128", "cdouble": "complex128", "complex32": "complex32",
    "float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2",
}  # fmt: skip
_CAST_METHODS = {
    "half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64",
    "long": "int64", "int": "int32", "bool": "bool", "byte": "uint8", "short": "int16",
    "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip
_KEEPS_DTYPE = frozenset(
    "view reshape transpose permute contiguous cuda cpu detach clone squeeze unsqueeze flatten "
    "expand expand_as repeat view_as t mT relu tanh sigmoid abs clamp masked_fill unfold roll flip "
    "softmax log_softmax sum mean matmul mm bmm add mul sub div exp log sqrt pow gather narrow "
    "index_select requires_grad_ chunk split dropout to_sparse movedim swapaxes norm".split()
)
_WHOLE = frozenset(("int64", "int32", "int16", "int8", "uint8", "bool"))
_CHANGES_WHOLE = frozenset(
    "sum mean exp log sqrt tanh sigmoid softmax log_softmax div pow dropout gelu silu".split()
)
_FACTORIES = frozenset(
    f"torch.{name}" for name in ("zeros", "ones", "rand", "randn", "empty", "linspace", "eye")
)
_FIRST_ARGUMENT = frozenset(
    f"{home}.{name}"
    for home in ("torch", "torch.nn.functional")
    for name in ("relu", "gelu", "silu", "softmax", "matmul", "bmm", "mm", "sigmoid", "tanh", "exp",
                 "dropout", "linear", "log_softmax", "sum", "mean", "abs", "sqrt", "clamp", "norm")
)  # fmt: skip
_TRANSFORMS = frozenset(
    ("cuda", "cpu", "to", "half", "bfloat16", "float", "double", "eval", "train")
)
_MODEL_NAME = pattern(
    r"(?:^|_)(?:model|net|network|module|encoder|decoder|backbone|unet|vae|transformer|critic|actor"
    r"|policy|generator|discriminator|resnet|bert|llama|gpt|vit|unet|classifier|netG|netD)\d*$",
    re.IGNORECASE,
)
_OPTIMIZER_NAME = pattern(r"(?:^|_)(?:opt|optim|optimizer|optimizers)(?:_?\w)?\d*$", re.IGNORECASE)
_DEPTH = 8
MISSING = object()


class Binding(NamedTuple):
    """One place where a name gets a value."""

    node: ast.AST
    """The name or argument that is bound."""
    value: ast.expr | None
    """The expression, when the name takes all of it; None for loops, unpacking, parameters."""
    statement: ast.AST
    how: str
    """assign, augment, loop, with, unpack, parameter, delete, import or define."""

    @property
    def position(self) -> tuple[int, int]:
        return getattr(self.node, "lineno", 0), getattr(self.node, "col_offset", 0)


def _bindings_of(scene: ParsedFile, name: str) -> dict[ast.AST, list[Binding]]:
    """What binds one name, by scope; names that nobody asks about are never looked at."""
    stores: dict[str, list[ast.Name | ast.arg]] | None = scene.cache.get("stores")
    if stores is None:
        stores = defaultdict(list)
        for node in scene.all(ast.Name):
            if node.ctx.__class__ is not ast.Load:
                stores[node.id].append(node)
        for argument in scene.all(ast.arg):
            stores[argument.arg].append(argument)
        scene.cache["stores"] = stores
        scene.cache["bindings"] = {}
    known: dict[str, dict[ast.AST, list[Binding]]] = scene.cache["bindings"]
    if name not in known:
        found: dict[ast.AST, list[Binding]] = defaultdict(list)
        for store in stores.get(name, ()):
            scope = scene.scope(store)
            if isinstance(store, ast.arg):
                found[scope].append(Binding(store, None, scope, "parameter"))
            else:
                found[scope].append(_binding(scene, store))
        for rows in found.values():
            rows.sort(key=lambda binding: binding.position)
        known[name] = found
    return known[name]


def _binding(scene: ParsedFile, name: ast.Name) -> Binding:
    up = scene.parent(name)
    if isinstance(up, ast.Assign) and name in up.targets:
        return Binding(name, up.value, up, "assign")
    if isinstance(up, (ast.AnnAssign, ast.NamedExpr)) and up.target is name:
        return Binding(name, up.value, up, "assign")
    if isinstance(up, ast.AugAssign) and up.target is name:
        return Binding(name, None, up, "augment")
    if isinstance(up, ast.withitem):
        return Binding(name, up.context_expr, scene.statement(name) or up, "with")
    if isinstance(up, (ast.Tuple, ast.List)):
        paired = _paired(scene, name, up)
        if paired is not None:
            return paired
    statement = scene.statement(name) or scene.root
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return Binding(name, None, statement, "loop")
    if isinstance(name.ctx, ast.Del):
        return Binding(name, None, statement, "delete")
    return Binding(name, None, statement, "unpack")


def _paired(scene: ParsedFile, name: ast.Name, targets: ast.Tuple | ast.List) -> Binding | None:
    """`a, b = x, y` binds a to x and b to y."""
    up = scene.parent(targets)
    if not isinstance(up, ast.Assign) or not isinstance(up.value, (ast.Tuple, ast.List)):
        return None
    sources = up.value.elts
    if len(sources) != len(targets.elts) or any(isinstance(s, ast.Starred) for s in sources):
        return None
    return Binding(name, sources[targets.elts.index(name)], up, "assign")


def bindings(scene: ParsedFile, node: ast.Name) -> list[Binding]:
    """Everything that binds this name in the innermost scope that does so."""
    found = _bindings_of(scene, node.id)
    if not found:
        return []
    scope = scene.scope(node)
    while True:
        rows = found.get(scope)
        if rows or scope is scene.root:
            return rows or []
        scope = scene.scope(scope)


def literal(scene: ParsedFile, node: ast.AST | None) -> Any:
    """The value of a constant (also `-1`, and a name bound once to one), else MISSING."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = literal(scene, node.operand)
        return -inner if isinstance(inner, (int, float)) else MISSING
    if isinstance(node, ast.Name):
        rows = bindings(scene, node)
        if len(rows) == 1 and isinstance(rows[0].value, ast.Constant):
            return rows[0].value.value
    return MISSING


def count_before(rows: list[Binding], node: ast.AST) -> int:
    """How many of a name's bindings, which are in order, are written before a node."""
    at = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
    return bisect_left(rows, at, key=lambda row: row.position)


def value_of(scene: ParsedFile, node: ast.AST | None) -> ast.expr | None:
    """The expression last bound before the node, unless a branch or loop leaves it open."""
    if not isinstance(node, ast.Name):
        return None
    rows = bindings(scene, node)
    if not rows:
        return None
    same_scope = scene.scope(node) is scene.scope(rows[0].node)
    count = count_before(rows, node) if same_scope else len(rows)
    if not count or (not same_scope and count > 1):
        return None
    last = rows[count - 1]
    own = scene.statement(node)
    if last.statement is own and count > 1:
        last = rows[count - 2]  # `x = f(x)` reads the x before
    if last.how not in ("assign", "with"):
        return None
    return last.value


def attribute_values(scene: ParsedFile, owner: ast.ClassDef, name: str) -> list[ast.expr]:
    """Every expression that the class assigns, as a whole, to `self.name`."""
    return [value for value, place in attribute_sources(scene, owner, name) if place is None]


Source = tuple[ast.expr, int | None]
"""An expression, and which part of it is meant; None for all of it."""


def attribute_sources(scene: ParsedFile, owner: ast.ClassDef, name: str) -> list[Source]:
    """Every expression that the class assigns to `self.name`, alone, by unpacking or by name."""
    table: dict[tuple[ast.ClassDef, str], list[Source]] | None = scene.cache.get("attributes")
    if table is None:
        table = scene.cache["attributes"] = defaultdict(list)
        statements: list[ast.Assign | ast.AnnAssign] = [*scene.all(ast.Assign)]
        statements += scene.all(ast.AnnAssign)
        for statement in statements:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets if statement.value is not None else ():
                for attribute, value, place in _stored(target, statement.value):  # type: ignore[arg-type]
                    home = scene.class_of(statement)
                    if home is not None:
                        table[home, attribute].append((value, place))
        for call in (*scene.calls.get("add_module", ()), *scene.calls.get("register_module", ())):
            given = literal(scene, call.args[0]) if len(call.args) == 2 else None
            home = scene.class_of(call)
            if isinstance(given, str) and home is not None:
                if scene.dotted(scene.receiver(call)) == "self":
                    table[home, given].append((call.args[1], None))
    return table.get((owner, name), [])


def _stored(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr, int | None]]:
    """The attributes of `self` that one target sets, with what they get."""
    if isinstance(target, ast.Attribute):
        if isinstance(target.value, ast.Name) and target.value.id == "self":
            yield target.attr, value, None
    elif isinstance(target, (ast.Tuple, ast.List)):
        pairs = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        paired = len(pairs) == len(target.elts)
        for place, part in enumerate(target.elts):
            for attribute, _, _ in _stored(part, value):
                yield attribute, (pairs[place] if paired else value), (None if paired else place)


def origin(scene: ParsedFile, node: ast.AST | None, depth: int = _DEPTH) -> ast.expr | None:
    """The expression at the first source of a name or of `self.attribute`."""
    current = node
    for _ in range(depth):
        step: ast.expr | None = None
        if isinstance(current, ast.Name):
            step = value_of(scene, current)
        elif (
            isinstance(current, ast.Attribute)
            and isinstance(current.value, ast.Name)
            and current.value.id == "self"
            and (owner := scene.class_of(current)) is not None
        ):
            made = attribute_values(scene, owner, current.attr)
            step = made[0] if len(made) == 1 else None
        elif isinstance(current, ast.Call) and scene.method(current) in _TRANSFORMS:
            step = scene.receiver(current)
        if step is None:
            break
        current = step
    return current if isinstance(current, ast.expr) else None


def dtype_literal(scene: ParsedFile, node: ast.AST | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return DTYPES.get(node.value.removeprefix("torch."), "")
    full = scene.qualified(node)
    if full.startswith("torch."):
        return DTYPES.get(full.removeprefix("torch."), "")
    if isinstance(node, ast.Name) and (value := value_of(scene, node)) is not None:
        return dtype_literal(scene, value) if not isinstance(value, ast.Name) else ""
    return ""


def dtype_of(scene: ParsedFile, node: ast.AST | None, depth: int = _DEPTH) -> str:
    """The dtype of a tensor expression where local assignments tell it, else ""."""
    if node is None or not depth:
        return ""
    if isinstance(node, ast.Name):
        value = value_of(scene, node)
        if value is None or _in_other_branch(scene, value, node):
            return ""
        return dtype_of(scene, value, depth - 1)
    if isinstance(node, ast.Subscript):
        return dtype_of(scene, node.value, depth - 1)
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return _dtype_of_operation(scene, node, depth)
    if isinstance(node, ast.Call):
        return _dtype_of_call(scene, node, depth)
    return ""


def _in_other_branch(scene: ParsedFile, value: ast.expr, node: ast.AST) -> bool:
    """Whether a value is bound under a condition or in a loop that the node is not part of."""
    around = set(scene.ancestors(node))
    child: ast.AST = value
    for up in scene.ancestors(value):
        if up in around:
            return isinstance(up, ast.If) and _arm(up, child) != _arm(up, node, scene)
        if isinstance(
            up, (ast.If, ast.IfExp, ast.Try, ast.For, ast.AsyncFor, ast.While, ast.Match)
        ):
            return True
        child = up
    return False


def _arm(choice: ast.If, node: ast.AST, scene: ParsedFile | None = None) -> bool:
    """Whether a node stands in the `else` of an if."""
    if scene is not None:
        for up in scene.ancestors(node):
            if up is choice:
                break
            node = up
    return node in choice.orelse


def _dtype_of_operation(scene: ParsedFile, node: ast.BinOp | ast.UnaryOp, depth: int) -> str:
    if isinstance(node, ast.UnaryOp):
        return dtype_of(scene, node.operand, depth - 1)
    left, right = (dtype_of(scene, side, depth - 1) for side in (node.left, node.right))
    found = left if left == right else ""
    for side, other in ((node.right, left), (node.left, right)):
        if isinstance(side, ast.Constant):
            found = "" if isinstance(side.value, float) and other in _WHOLE else other
            break
    return "" if found in _WHOLE and isinstance(node.op, ast.Div) else found


def _dtype_of_call(scene: ParsedFile, call: ast.Call, depth: int) -> str:
    given = scene.keyword(call, "dtype")
    if given is not None:
        return dtype_literal(scene, given)
    method = scene.method(call)
    receiver = scene.receiver(call)
    if method in _CAST_METHODS and not call.args:
        return _CAST_METHODS[method]
    if method in ("to", "type"):
        for argument in call.args:
            found = dtype_literal(scene, argument)
            if found and not (isinstance(argument, ast.Constant) and method == "to"):
                return found
        # `.to(device)` keeps the dtype; `.to(something)` may be a dtype that nobody can see here
        plain = [a for a in call.args if isinstance(a, ast.Constant) or "device" in scene.text(a)]
        return dtype_of(scene, receiver, depth - 1) if len(plain) == len(call.args) else ""
    if method in _KEEPS_DTYPE:
        return _kept(method, dtype_of(scene, receiver, depth - 1))
    full = scene.qualified(call.func)
    if full in _FIRST_ARGUMENT and call.args:
        return _kept(full.rpartition(".")[2], dtype_of(scene, call.args[0], depth - 1))
    if full in _FACTORIES:
        return "float32"
    return ""


def _kept(function: str, dtype: str) -> str:
    """The dtype after a function that keeps it, unless whole numbers became something else."""
    if dtype not in _WHOLE or function not in _CHANGES_WHOLE:
        return dtype
    return "int64" if function == "sum" else ""


def is_made_as_model(scene: ParsedFile, source: ast.expr | None) -> bool:
    """Whether an expression makes an nn.Module of torch or of a library."""
    if not isinstance(source, ast.Call):
        return False
    full = scene.qualified(source.func)
    if full.startswith("torch.nn.") and not full.startswith(
        ("torch.nn.functional.", "torch.nn.Parameter", "torch.nn.parameter")
    ):
        return True
    if full.startswith(("torchvision.models.", "timm.create_model", "torch.hub.load")):
        return True
    return scene.last_name(source.func) in ("from_pretrained", "from_config", "create_model")


def is_used_as_model(scene: ParsedFile, node: ast.AST | None) -> bool:
    """Whether a value is called what models are called, or asked for what modules have."""
    return bool(_MODEL_NAME.search(scene.last_name(node))) or _used_as(scene, node, _OF_MODULES)


def is_optimizer(scene: ParsedFile, node: ast.AST | None) -> bool:
    source = origin(scene, node)
    if isinstance(source, ast.Call) and scene.qualified(source.func).startswith("torch.optim."):
        return ".lr_scheduler." not in scene.qualified(source.func)
    if isinstance(node, ast.Subscript):
        return is_optimizer(scene, node.value)
    if _OPTIMIZER_NAME.search(scene.last_name(node)):
        return True
    return _used_as(scene, node, ("zero_grad",)) and _used_as(scene, node, ("step",))


_OF_MODULES = ("parameters", "named_parameters", "state_dict")


def _used_as(scene: ParsedFile, node: ast.AST | None, methods: tuple[str, ...]) -> bool:
    """Whether the scope of a name (or the class of `self.attribute`) calls one of these methods on it."""
    name = scene.dotted(node)
    if node is None or not name:
        return False
    home = scene.class_of(node) if name.startswith("self.") else scene.scope(node)
    for method in methods:
        if (home, name) in _receivers(scene, method):
            return not (method == "state_dict" and _used_as(scene, node, ("step",)))
    return False


def _receivers(scene: ParsedFile, method: str) -> set[tuple[ast.AST | None, str]]:
    """What a method is called on, with the scope of a name or the class of an attribute."""
    table: dict[str, set[tuple[ast.AST | None, str]]] = scene.cache.setdefault("used as", {})
    if method not in table:
        found = table[method] = set()
        for call in scene.calls.get(method, ()):
            name = scene.dotted(scene.receiver(call))
            own = name.startswith("self.")
            found.add((scene.class_of(call) if own else scene.scope(call), name))
    return table[method]
