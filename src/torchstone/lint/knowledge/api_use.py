"""How a file names torch's functions: where it guards itself, and how to name another one."""

from __future__ import annotations

import ast
import re

from torchstone.core.fix import Edit, Fix
from torchstone.core.pattern import pattern
from torchstone.lint.knowledge.torch_api import DEPRECATED, PRIVATE, Symbol
from torchstone.lint.rule import safe, unsafe
from torchstone.sources.scene import FUNCTIONS, MISSING, Scene

_VERSIONS = pattern(
    r"version|hasattr|torch_\w*\d|torch_(?:major|minor)|pt_?\d|available|parse|sys\.modules",
    re.IGNORECASE,
)
_KEEPS = {
    "torch.linalg.vector_norm": {"p": "ord"},
    "torch.linalg.matrix_rank": {"symmetric": "hermitian"},
}
_MODES = {
    "torch.nn.UpsamplingNearest2d": "mode='nearest'",
    "torch.nn.UpsamplingBilinear2d": "mode='bilinear', align_corners=True",
}


def guarded(scene: Scene, node: ast.AST) -> bool:
    """Whether a place runs only where the name exists: in `try`, or under a question of version."""
    child = node
    for up in scene.ancestors(node):
        if isinstance(up, ast.Try) and child in up.body and up.handlers:
            return True
        if isinstance(up, ast.ExceptHandler):
            return True
        if isinstance(up, (ast.If, ast.IfExp)) and child is not up.test:
            if _VERSIONS.search(scene.text(up.test)):
                return True
        if isinstance(up, FUNCTIONS) and _VERSIONS.search(
            " ".join(map(scene.text, up.decorator_list))
        ):
            return True
        child = up
    return False


def written(scene: Scene, func: ast.expr, name: str) -> str:
    """How this file can write a full name where `func` stands, or "" without a new import."""
    base = func
    while isinstance(base, ast.Attribute):
        base = base.value
    if isinstance(base, ast.Name) and isinstance(func, ast.Attribute):
        target = scene.imports.aliases.get(base.id, "")
        if target and name.startswith(target + "."):
            return base.id + name[len(target) :]
    for local, target in scene.imports.aliases.items():
        if target == "torch" and name.startswith("torch."):
            return local + name[len("torch") :]
    return ""


def from_import(scene: Scene, func: ast.expr, name: str) -> bool:
    """Whether what is called came by `from module import name` for this full name."""
    module, _, last = name.rpartition(".")
    return isinstance(func, ast.Name) and any(
        alias.name == last and (alias.asname or last) == func.id
        for node in scene.all(ast.ImportFrom)
        if node.module == module and not node.level
        for alias in node.names
    )


def import_fix(scene: Scene, node: ast.ImportFrom, alias: ast.alias, symbol: Symbol) -> Fix | None:
    """Import the successor instead, and call it by its name wherever the old one is read."""
    if not symbol.drop_in:
        return None
    home, _, last = symbol.instead.rpartition(".")
    local = alias.asname or alias.name
    edits: list[Edit] = []
    if home == node.module:
        edits.append(scene.replace(alias, f"{last} as {alias.asname}" if alias.asname else last))
    elif last == alias.name and _all_move(node, home):
        moved = re.sub(r"^from\s+[\w.]+", f"from {home}", scene.text(node), count=1)
        edits.append(scene.replace(node, moved))
    else:
        return None
    if not alias.asname and last != local:
        if last in scene.bound or local in scene.bound or last in scene.imports.aliases:
            return None
        edits += [scene.replace(name, last) for name in scene.all(ast.Name) if name.id == local]
    return safe(*edits)


def _all_move(node: ast.ImportFrom, home: str) -> bool:
    """Whether every name of an import has moved to the same module under the same name."""
    for alias in node.names:
        full = f"{node.module}.{alias.name}"
        symbol = DEPRECATED.get(full) or PRIVATE.get(full)
        if symbol is None or not symbol.drop_in or symbol.instead != f"{home}.{alias.name}":
            return False
    return True


def call_fix(scene: Scene, call: ast.Call, symbol: Symbol) -> Fix | None:
    """The same call with the new name, where the arguments are plain enough to be sure."""
    if not symbol.instead or (symbol.name.startswith("torch._") and not symbol.drop_in):
        return None
    new = written(scene, call.func, symbol.instead)
    if not new:
        return None
    if symbol.drop_in:
        return safe(scene.replace(call.func, new))
    maker = _MAKERS.get(symbol.name)
    return None if maker is None or _many_lines(scene, call) else maker(scene, call, new)


def _many_lines(scene: Scene, call: ast.Call) -> bool:
    """Rewritten arguments would lose their line breaks and comments."""
    return scene.span(call)[0] != scene.span(call)[2]


def _given(call: ast.Call, *names: str) -> dict[str, ast.expr] | None:
    """Arguments by name, or None when there are others than these."""
    if len(call.args) > len(names) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    found = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg not in names or keyword.arg in found:
            return None
        found[keyword.arg] = keyword.value
    return found


def _flag(scene: Scene, given: dict[str, ast.expr], name: str, default: bool) -> bool | None:
    """A literal True or False, or None when nobody can tell."""
    if name not in given:
        return default
    value = scene.literal(given[name])
    return value if isinstance(value, bool) else None


def _qr(scene: Scene, call: ast.Call, new: str) -> Fix | None:
    given = _given(call, "input", "some")
    some = _flag(scene, given, "some", True) if given else None
    if not given or some is None or "input" not in given:
        return None
    mode = "" if some else ", mode='complete'"
    return safe(scene.replace(call, f"{new}({scene.text(given['input'])}{mode})"))


def _cholesky(scene: Scene, call: ast.Call, new: str) -> Fix | None:
    given = _given(call, "input", "upper")
    upper = _flag(scene, given, "upper", False) if given else None
    if not given or upper is None or "input" not in given:
        return None
    return safe(scene.replace(call, f"{new}({scene.text(given['input'])}){'.mH' if upper else ''}"))


def _chain_matmul(scene: Scene, call: ast.Call, new: str) -> Fix | None:
    if not call.args or any(keyword.arg != "out" for keyword in call.keywords):
        return None
    inner = ", ".join(scene.text(argument) for argument in call.args)
    rest = "".join(f", {scene.text(keyword)}" for keyword in call.keywords)
    edit = scene.replace(call, f"{new}([{inner}]{rest})")
    plain = len(call.args) > 1 and not any(isinstance(a, ast.Starred) for a in call.args)
    return safe(edit) if plain else unsafe(edit)


def _lu_solve(scene: Scene, call: ast.Call, new: str) -> Fix | None:
    if call.keywords or len(call.args) != 3 or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    right, factors, pivots = (scene.text(argument) for argument in call.args)
    return safe(scene.replace(call, f"{new}({factors}, {pivots}, {right})"))


def _lu(scene: Scene, call: ast.Call, new: str) -> Fix | None:
    plain = len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)
    return safe(scene.replace(call.func, new)) if plain else None


def _norm(scene: Scene, call: ast.Call, new: str) -> Fix | None:
    given = _given(call, "input", "p", "dim", "keepdim")
    if not given or "input" not in given:
        return None
    order = scene.literal(given["p"]) if "p" in given else 2
    if isinstance(order, bool) or not isinstance(order, (int, float)):
        return None
    edits = [
        scene.replace(call.func, new),
        *_renamed_keywords(scene, call, "torch.linalg.vector_norm"),
    ]
    # vector_norm does not take sparse tensors
    return unsafe(*edits) if "sparse" in scene.source.text else safe(*edits)


def _matrix_rank(scene: Scene, call: ast.Call, new: str) -> Fix | None:
    if len(call.args) > 1 or scene.has_star(call):
        return None
    return unsafe(
        scene.replace(call.func, new), *_renamed_keywords(scene, call, "torch.linalg.matrix_rank")
    )


def _renamed_keywords(scene: Scene, call: ast.Call, new: str) -> list[Edit]:
    names = {**_KEEPS.get(new, {}), "input": "x" if new.endswith("norm") else "A"}
    return [
        scene.replace(keyword, f"{names[keyword.arg]}={scene.text(keyword.value)}")
        for keyword in call.keywords
        if keyword.arg in names
    ]


def _symeig(scene: Scene, call: ast.Call, new: str) -> Fix | None:
    given = _given(call, "input", "eigenvectors", "upper")
    if not given or "input" not in given:
        return None
    vectors, upper = _flag(scene, given, "eigenvectors", False), _flag(scene, given, "upper", True)
    if vectors is not True or upper is None:
        return None
    return unsafe(
        scene.replace(call, f"{new}({scene.text(given['input'])}, UPLO='{'U' if upper else 'L'}')")
    )


def _solve(scene: Scene, call: ast.Call, new: str) -> Fix | None:
    """`torch.solve(B, A).solution` and `torch.solve(B, A)[0]`."""
    up = scene.parent(call)
    solution = isinstance(up, ast.Attribute) and up.attr == "solution"
    first = isinstance(up, ast.Subscript) and scene.literal(up.slice) == 0
    if not (solution or first) or call.keywords or len(call.args) != 2:
        return None
    assert up is not None
    right, matrix = (scene.text(argument) for argument in call.args)
    return unsafe(scene.replace(up, f"{new}({matrix}, {right})"))


def _upsampling(scene: Scene, call: ast.Call, new: str) -> Fix | None:
    if scene.has_star(call) or len(call.args) > 2:
        return None
    return safe(
        scene.replace(call.func, new), scene.add_keyword(call, _MODES[scene.qualified(call.func)])
    )


def _range(scene: Scene, call: ast.Call, new: str) -> Fix | None:
    """`torch.range` has its end in, and is floating whatever it is given."""
    if len(call.args) > 3 or scene.has_star(call):
        return None
    given = dict(zip(("start", "end", "step"), call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    stride = scene.literal(given["step"]) if "step" in given else 1
    if "end" not in given or isinstance(stride, bool) or not isinstance(stride, int) or not stride:
        return None
    end = scene.literal(given["end"])
    start = scene.literal(given["start"]) if "start" in given else 0
    if isinstance(start, float) or isinstance(end, float):
        return None
    edits = [
        scene.replace(call.func, new),
        scene.replace(given["end"], _past(scene, given["end"], end, 1 if stride > 0 else -1)),
    ]
    if "dtype" not in given and "out" not in given:
        home = new.rpartition(".")[0]
        edits.append(scene.add_keyword(call, f"dtype={home}.get_default_dtype()"))
    whole = isinstance(start, int) and isinstance(end, int)
    return safe(*edits) if whole else unsafe(*edits)


def _past(scene: Scene, node: ast.expr, end: object, sign: int) -> str:
    """The end of a range, moved one on so that it is included."""
    if end is not MISSING and isinstance(end, int) and not isinstance(node, ast.Name):
        return str(end + sign)
    if (
        sign > 0
        and isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and scene.literal(node.right) == 1
    ):
        return scene.text(node.left)
    text = scene.text(node)
    wrapped = (
        f"({text})" if isinstance(node, (ast.IfExp, ast.Lambda, ast.BoolOp, ast.Compare)) else text
    )
    return f"{wrapped} {'+' if sign > 0 else '-'} 1"


_MAKERS = {
    "torch.qr": _qr,
    "torch.cholesky": _cholesky,
    "torch.chain_matmul": _chain_matmul,
    "torch.lu_solve": _lu_solve,
    "torch.lu": _lu,
    "torch.norm": _norm,
    "torch.matrix_rank": _matrix_rank,
    "torch.symeig": _symeig,
    "torch.solve": _solve,
    "torch.range": _range,
    "torch.nn.UpsamplingNearest2d": _upsampling,
    "torch.nn.UpsamplingBilinear2d": _upsampling,
}
