"""What is not an nn.Parameter attribute is not a parameter of the module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.layers import is_parameter
from torchstone.lint.rule import CERTAIN, LIKELY, MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import Scene

_MOVES = ("cuda", "to", "half", "bfloat16", "float", "double", "cpu", "type")

RULE = Rule(
    "TS222",
    "unregistered-parameter",
    severity=MEDIUM,
    highest=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`self.{name}` requires grad but is no parameter of the module",
        zh="`self.{name}` 需要梯度，却不是模块的参数",
    ),
    why=Text(
        en="only nn.Parameter attributes are registered: parameters(), state_dict() and to() pass "
        "over this tensor, so it is neither trained nor saved nor moved",
        zh="只有 nn.Parameter 属性才会被登记：parameters()、state_dict()、to() 都会略过这个张量，"
        "它不会被训练、保存或移动",
    ),
    suggest=Text(
        en="write `self.{name} = nn.Parameter(...)`", zh="写成 `self.{name} = nn.Parameter(...)`"
    ),
    title=Text(
        en="A module's trainable tensor is no nn.Parameter, so the optimizer never sees it",
        zh="模块中的可训练张量不是 nn.Parameter，优化器看不到它",
    ),
    page=Text(
        en="Fires in nn.Module classes for `self.w = torch.randn(..., requires_grad=True)` and for "
        "`self.w = nn.Parameter(...).to(device)`: a move or cast of a Parameter gives a plain, "
        "non-leaf tensor (`.to` of the device it is already on gives the Parameter back, which is "
        "why this only shows on the GPU).\n\n"
        "- Quiet when the class registers the name (`register_parameter`, `register_buffer`), and "
        "when the file hands `...{name}` to an optimizer by itself.",
        zh="在 nn.Module 类中，`self.w = torch.randn(..., requires_grad=True)` 与 "
        "`self.w = nn.Parameter(...).to(device)` 会被报告：对 Parameter 做移动或类型转换得到的是普通的非叶子张量"
        "（若本来就在该设备上，`.to` 会原样返回，所以只在 GPU 上才暴露）。\n\n"
        "- 类中用 `register_parameter`、`register_buffer` 注册了该名称，或文件自行把它交给优化器时，不报告。",
    ),
    bad="""\
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.ones(n, requires_grad=True)

    def forward(self, x):
        return x * self.weight
""",
    fixed="""\
@@ -7 +7 @@
-        self.weight = torch.ones(n, requires_grad=True)
+        self.weight = nn.Parameter(torch.ones(n, requires_grad=True))
""",
    words=("requires_grad", "Parameter"),
    needs=("self", "class"),
)


@RULE.on(ast.Assign)
def check(statement: ast.Assign, scene: Scene) -> Iterator[Hit]:
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Attribute) or not isinstance(value, ast.Call):
        return
    if scene.dotted(target.value) != "self":
        return
    moved = _moved(scene, value)
    plain = (
        moved is None
        and scene.qualified(value.func).startswith("torch.")
        and scene.literal(scene.keyword(value, "requires_grad")) is True
        and not is_parameter(scene, value.func)
    )
    if moved is None and not plain:
        return
    owner = scene.class_of(statement)
    if owner is None or not scene.is_module_class(owner) or _known(scene, target.attr):
        return
    sure = scene.method(value) == "cuda"
    yield RULE.at(
        statement,
        name=target.attr,
        # an optimizer of another file may be given the tensor by itself
        # and `.to(device)` of the device that it is on gives the parameter itself back
        severity=None if not plain and _moves_for_sure(scene, value) else MEDIUM,
        confidence=CERTAIN if sure else LIKELY,
        fix=_fix(scene, value, moved),
    )


def _moves_for_sure(scene: Scene, value: ast.Call) -> bool:
    """Whether some move or cast leaves no doubt: `.cuda()`, `.half()`, `.to("cuda")`."""
    step: ast.expr | None = value
    while isinstance(step, ast.Call) and scene.method(step) in _MOVES:
        given = scene.literal(step.args[0]) if step.args else None
        named = isinstance(given, str) and given.startswith("cuda")
        if scene.method(step) in ("cuda", "half", "bfloat16", "double") or named:
            return True
        step = scene.receiver(step)
    return False


def _moved(scene: Scene, value: ast.Call) -> ast.Call | None:
    """The nn.Parameter(...) below moves and casts."""
    below: ast.expr | None = value
    while isinstance(below, ast.Call) and scene.method(below) in _MOVES:
        below = scene.receiver(below)
    if below is value or not isinstance(below, ast.Call) or _changes_nothing(scene, value, below):
        return None
    return below if is_parameter(scene, below.func) else None


def _changes_nothing(scene: Scene, value: ast.Call, parameter: ast.Call) -> bool:
    """Whether only casts to float32 follow, and the parameter is float32 already: torch then gives
    the parameter itself back."""
    step: ast.expr | None = value
    while isinstance(step, ast.Call) and step is not parameter:
        to_float = scene.method(step) == "float" or (
            scene.method(step) == "to"
            and len(step.args) == 1
            and scene.dtype_literal(step.args[0]) == "float32"
        )
        if not to_float:
            return False
        step = scene.receiver(step)
    inner = parameter.args[0] if parameter.args else None
    return scene.dtype(inner) in ("float32", "")


def _known(scene: Scene, name: str) -> bool:
    """Whether the tensor is registered by name, listed for an optimizer, or given to one, somewhere in the
    file."""
    for method in ("register_parameter", "register_buffer", "setattr"):
        for call in scene.calls.get(method, ()):
            if any(isinstance(a, ast.Constant) and a.value == name for a in call.args):
                return True
    for listed in scene.all(ast.List):
        kept = isinstance(scene.parent(listed), (ast.Assign, ast.Return))
        if kept and any(scene.dotted(item) == f"self.{name}" for item in listed.elts):
            return True
    return any(
        isinstance(part, ast.Attribute) and part.attr == name
        for call in scene.all(ast.Call)
        if scene.qualified(call.func).startswith("torch.optim.")
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
        for part in scene.inside(argument)
    )


def _fix(scene: Scene, value: ast.Call, parameter: ast.Call | None) -> Fix | None:
    if parameter is None:
        home = next((n for n, full in scene.imports.aliases.items() if full == "torch.nn"), "")
        home = home or ("torch.nn" if "torch" in scene.imports.aliases else "")
        if not home:
            return None
        return safe(scene.replace(value, f"{home}.Parameter({scene.text(value)})"))
    if len(parameter.args) != 1 or parameter.keywords:
        return None
    inner = parameter.args[0]
    if not isinstance(inner, (ast.Call, ast.Name, ast.Attribute)):
        return None
    tail = scene.text(value)[len(scene.text(parameter)) :]
    made = f"{scene.text(parameter.func)}({scene.text(inner)}{tail})"
    return safe(scene.replace(value, made))
