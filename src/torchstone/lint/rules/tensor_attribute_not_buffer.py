"""A constant tensor that is a plain attribute stays behind when the module moves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import own_nodes, parameters, passed
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.sources.scene import FUNCTIONS, Scene
from torchstone.sources.targets import target_of

RULE = Rule(
    "TS230",
    "tensor-attribute-not-buffer",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`self.{name}` is a tensor of the module but no buffer",
        zh="`self.{name}` 是模块的张量，却不是 buffer",
    ),
    why=Text(
        en="to(), cuda() and half() move parameters and buffers only: this tensor stays on the CPU, "
        "and forward meets two devices; it is not broadcast to replicas either",
        zh="to()、cuda()、half() 只移动参数和 buffer：这个张量会留在 CPU，forward 时遇到两个设备；它也不会广播到各"
        "副本",
    ),
    suggest=Text(
        en='write `self.register_buffer("{name}", ..., persistent=False)`',
        zh='写成 `self.register_buffer("{name}", ..., persistent=False)`',
    ),
    title=Text(
        en="A constant tensor of a module is a plain attribute instead of a buffer",
        zh="模块的常量张量是普通属性而不是 buffer",
    ),
    page=Text(
        en="Fires in nn.Module classes for `self.name = torch.ones(...)` (or another function that "
        "makes a tensor on the CPU) in `__init__`, when `forward`, or a method it calls, computes "
        "with `self.name` and the class never moves it.\n\n"
        "- Quiet where a device is given or anything in the class says `.to(`, `.cuda(`, `.device` "
        "or `type_as` of it, where only its size or items are read, and where methods bind it anew.\n"
        "- The fix keeps the state dict as it is (`persistent=False`); leave that out for a tensor "
        "that belongs into checkpoints.",
        zh="在 nn.Module 类中，`__init__` 里有 `self.name = torch.ones(...)`（或其他在 CPU 上创建张量的函数），而 "
        "`forward` 或其调用的方法用 `self.name` 参与计算，且类中从未移动它时报告。\n\n"
        "- 给定了 device、类中对它有 `.to(`、`.cuda(`、`.device` 或 `type_as`、只读取其大小或元素、或在方法中重新赋值"
        "时不报告。\n"
        "- 修复不改变 state dict（`persistent=False`）；若应写入检查点，请去掉该参数。",
    ),
    bad="""\
import torch
from torch import nn

class Focal(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.ones(n)

    def forward(self, x):
        return (x * self.weight).sum()
""",
    fixed="""\
@@ -7 +7 @@
-        self.weight = torch.ones(n)
+        self.register_buffer("weight", torch.ones(n), persistent=False)
""",
    words=(
        "zeros",
        "ones",
        "tensor",
        "arange",
        "linspace",
        "eye",
        "full",
        "randn",
        "from_numpy",
        "Tensor",
        "FloatTensor",
        "hann_window",
        "rand",
        "logspace",
        "hamming_window",
        "getattr",
    ),
    needs=("Module", "forward"),
)
_MAKERS = frozenset(
    f"torch.{name}"
    for name in "zeros ones tensor arange linspace eye full randn rand from_numpy tril triu hann_window "
    "hamming_window logspace Tensor FloatTensor".split()
)
_PASSES_ON = frozenset(
    f"torch.{name}" for name in "cat stack concat exp log sin cos sqrt outer einsum pow".split()
)
_SEVERAL = pattern(r"list|tuple|sequence|ndarray|arraylike|iterable|tensor", re.I)
_NUMBER = pattern(r"torch\.(?:tensor|Tensor|FloatTensor)$")
_KEEPS = frozenset(
    "view reshape float unsqueeze squeeze repeat expand expand_as permute transpose t contiguous long flatten "
    "detach clone sqrt exp log flip sin cos pow tril triu".split()
)
_COMPUTES = ("torch.nn.functional.", "torch.matmul", "torch.einsum", "torch.mul", "torch.add",
             "torch.bmm", "torch.outer", "torch.cat", "torch.where", "torch.stack", "torch.sum")  # fmt: skip


@RULE.on(ast.ClassDef)
def check(owner: ast.ClassDef, scene: Scene) -> Iterator[Hit]:
    init = next((i for i in owner.body if isinstance(i, FUNCTIONS) and i.name == "__init__"), None)
    if init is None or scene.is_test or not scene.is_module_class(owner):
        return
    for statement in own_nodes(init):
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target: ast.expr = statement.target
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
        else:
            continue
        if not isinstance(target, ast.Attribute) or scene.dotted(target.value) != "self":
            continue
        if len(scene.attribute_values(owner, target.attr)) != 1:
            continue
        if _is_made(scene, statement.value) and _is_used(scene, owner, target.attr):
            yield RULE.at(statement, name=target.attr, fix=_fix(scene, statement, target.attr))


def _is_made(scene: Scene, value: ast.expr | None, depth: int = 8) -> bool:
    """Whether a tensor is made on the CPU and not moved."""
    if value is None or not depth:
        return False
    if isinstance(value, ast.Name):
        rows = scene.bindings(value)
        return (
            bool(rows)
            and all(row.how in ("assign", "augment", "unpack") for row in rows)
            and (_is_made(scene, rows[0].value, depth - 1))
        )
    if isinstance(value, ast.Subscript):
        return _is_made(scene, value.value, depth - 1)
    if isinstance(value, ast.IfExp):
        arms = [arm for arm in (value.body, value.orelse) if scene.literal(arm) is not None]
        return bool(arms) and all(_is_made(scene, arm, depth - 1) for arm in arms)
    if isinstance(value, ast.Call) and scene.last_name(value.func) == "Variable" and value.args:
        return _is_made(scene, value.args[0], depth - 1)
    while isinstance(value, ast.Call) and scene.method(value) in _KEEPS:
        value = value.func.value  # type: ignore[attr-defined]
        if isinstance(value, ast.Name):
            return _is_made(scene, value, depth - 1)
    if isinstance(value, ast.BinOp):
        sides = (value.left, value.right)
        return any(_is_made(scene, side, depth - 1) for side in sides)
    if isinstance(value, ast.Call) and scene.qualified(value.func) in _PASSES_ON and value.args:
        parts = (
            value.args[0].elts
            if isinstance(value.args[0], (ast.List, ast.Tuple))
            else value.args[:1]
        )
        return any(_is_made(scene, part, depth - 1) for part in parts)
    if not isinstance(value, ast.Call):
        return False
    if scene.qualified(value.func) not in _MAKERS and not _looked_up(scene, value):
        return False
    if value.args and _NUMBER.search(scene.qualified(value.func)):
        # a tensor without dimensions may stay on the CPU: operators take it as a number
        listed = isinstance(value.args[0], (ast.List, ast.Tuple, ast.ListComp))
        if not listed and not _is_sequence(scene, value.args[0]):
            return False
    return not any(
        keyword.arg in ("device", "requires_grad") or keyword.arg is None
        for keyword in value.keywords
    )


def _looked_up(scene: Scene, call: ast.Call) -> bool:
    """`getattr(torch, "hann_window")(n)`: a function of torch under a name that is passed in."""
    func = call.func
    return (
        isinstance(func, ast.Call)
        and scene.last_name(func.func) == "getattr"
        and len(func.args) == 2
        and scene.qualified(func.args[0]) == "torch"
    )


def _is_sequence(scene: Scene, node: ast.expr) -> bool:
    """Whether the annotation of a parameter says that it holds several numbers."""
    rows = scene.bindings(node) if isinstance(node, ast.Name) else []
    if len(rows) != 1 or not isinstance(rows[0].node, ast.arg):
        return False
    note = rows[0].node.annotation
    return note is not None and _SEVERAL.search(scene.text(note)) is not None


def _is_used(scene: Scene, owner: ast.ClassDef, name: str) -> bool:
    """Whether forward computes with the attribute, and nothing in the class moves or binds it."""
    computes = False
    for node in scene.inside(owner):
        if not (isinstance(node, ast.Attribute) and node.attr == name):
            continue
        if scene.dotted(node.value) != "self":
            return False
        function = scene.function(node)
        if function is not None and function.name == "__init__":
            continue
        if isinstance(node.ctx, ast.Store) or not _stays(scene, node):
            return False
        if function is not None and function.name == "forward" and _computes(scene, node):
            computes = True
    return computes and not _moved_with(scene, owner)


def _stays(scene: Scene, node: ast.Attribute) -> bool:
    """Whether a use neither moves the tensor nor takes its device from elsewhere."""
    up = scene.parent(node)
    if isinstance(up, ast.Subscript):
        up = scene.parent(up)
    if isinstance(up, ast.Attribute):
        return up.attr in _KEEPS or up.attr in ("shape", "size", "dtype", "ndim", "dim", "numel")
    return not isinstance(up, (ast.keyword, ast.Assign, ast.For, ast.withitem))


def _computes(scene: Scene, node: ast.Attribute) -> bool:
    up: ast.AST | None = scene.parent(node)
    while isinstance(up, (ast.Subscript, ast.Attribute)) or (
        isinstance(up, ast.Call) and scene.method(up) in _KEEPS
    ):
        up = scene.parent(up)
    if isinstance(up, ast.BinOp):
        return not isinstance(up.op, (ast.Mod, ast.FloorDiv))
    if not isinstance(up, ast.Call):
        return False
    return scene.qualified(up.func).startswith(_COMPUTES) or _computes_inside(scene, up, node)


def _computes_inside(scene: Scene, call: ast.Call, node: ast.Attribute) -> bool:
    """Whether a function of the project gets the attribute and hands it to one of torch."""
    found = target_of(scene, call) if node in call.args else None
    if found is None:
        return False
    home, function = found
    names = [name for name in parameters(function) if passed(scene, call, function, name) is node]
    return any(
        isinstance(inner, ast.Call)
        and home.qualified(inner.func).startswith("torch.")
        and any(home.dotted(item) in names for item in inner.args)
        for inner in own_nodes(function)
    )


def _moved_with(scene: Scene, owner: ast.ClassDef) -> bool:
    """Whether the class overrides how it moves."""
    return any(
        isinstance(item, FUNCTIONS) and item.name in ("to", "cuda", "_apply") for item in owner.body
    )


def _fix(scene: Scene, statement: ast.Assign | ast.AnnAssign, name: str) -> Fix | None:
    if statement.value is None:
        return None
    value = scene.text(statement.value)
    text = f'self.register_buffer("{name}", {value}, persistent=False)'
    return unsafe(scene.replace(statement, text))
