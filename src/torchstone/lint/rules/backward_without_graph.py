"""Under no_grad there is no graph to go back through."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.flow import callee, settled
from torchstone.lint.rule import CERTAIN, HIGH, LIKELY, Hit, Rule
from torchstone.sources.regions import ENABLE_GRAD, SET_GRAD
from torchstone.sources.scene import Scene
from torchstone.sources.training import backward_calls

RULE = Rule(
    "TS214",
    "backward-without-graph",
    group="correctness",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{call}`: the loss is computed under {region}",
        zh="`{call}`：损失是在 {region} 下计算的",
    ),
    why=Text(
        en="no graph is recorded there, so backward() raises RuntimeError: element 0 of tensors "
        "does not require grad and does not have a grad_fn",
        zh="那里不会记录计算图，backward() 会抛出 RuntimeError：element 0 of tensors does not require "
        "grad and does not have a grad_fn",
    ),
    suggest=Text(
        en="take the forward pass and the loss out of {region}",
        zh="把前向计算和损失移出 {region}",
    ),
    title=Text(
        en="backward() of a loss that was computed under no_grad",
        zh="对 no_grad 下计算的损失调用 backward()",
    ),
    page=Text(
        en="Fires when both `backward()` and the expression that made the loss stand inside "
        "`no_grad`, `inference_mode` or `set_grad_enabled(False)`: opened here, by a decorator, or "
        "by every caller of the function.\n\n"
        "- Quiet when the loss comes in from outside (backward itself may run under no_grad), and "
        "inside an `enable_grad` block, here or in the function that makes the loss.",
        zh="当 `backward()` 与产生损失的表达式都位于 `no_grad`、`inference_mode` 或 `set_grad_enabled(False)` "
        "之内（在此打开、由装饰器打开，或函数的所有调用方都已打开）时报告。\n\n"
        "- 不报告：损失来自外部（backward 本身可以在 no_grad 下执行）；位于 `enable_grad` 之内，或产生损失的函数"
        "自行打开了 `enable_grad`。",
    ),
    bad=(
        """\
import torch

def step(model, x, y, criterion):
    with torch.no_grad():
        loss = criterion(model(x), y)
        loss.backward()
""",
        """\
import torch

@torch.inference_mode()
def step(model, x, y):
    (model(x) - y).pow(2).mean().backward()
""",
    ),
    good=(
        """\
import torch

def step(model, x, y, criterion):
    loss = criterion(model(x), y)
    with torch.no_grad():
        loss.backward()
""",
        """\
import torch

@torch.no_grad()
def guide(model, x):
    with torch.enable_grad():
        loss = model(x).sum()
        loss.backward()
    return x - x.grad
""",
        """\
import torch

def loss_of(model, x):
    with torch.enable_grad():
        return model(x).sum()

@torch.no_grad()
def guide(model, x):
    loss = loss_of(model, x)
    loss.backward()
""",
        """\
import torch

@torch.no_grad()
def apply(loss):
    loss.backward()
""",
    ),
    needs=("backward",),
)


@RULE.on_call("backward")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if call not in backward_calls(scene) or not scene.method(call):
        return
    source: ast.expr | None = scene.receiver(call)
    if isinstance(source, ast.Name):
        source = settled(scene, source)
    if not isinstance(source, (ast.Call, ast.BinOp)) or scene.function(source) is not (
        scene.function(call)
    ):
        return
    if _regains(scene, source):
        return
    here = scene.lexical_region(call)
    if here.without_grad and scene.lexical_region(source).without_grad:
        yield RULE.at(call, confidence=CERTAIN, call=scene.brief(call), region=_named(here))
        return
    if scene.function(call) is None or here.without_grad:
        return
    around = scene.region(call)
    if around.without_grad and around.via and scene.region(source).without_grad:
        yield RULE.at(call, call=scene.brief(call), region=_named(around))


def _named(region: object) -> str:
    return "inference_mode" if getattr(region, "inference_mode", False) else "no_grad"


def _regains(scene: Scene, source: ast.expr) -> bool:
    """Whether a function that the loss comes from switches gradients on again."""
    for node in scene.inside(source):
        found = callee(scene, node) if isinstance(node, ast.Call) else None
        if found is None:
            continue
        home, function = found
        for item in home.inside(function):
            if isinstance(item, ast.Call) and home.qualified(item.func) in ENABLE_GRAD | SET_GRAD:
                return True
    return False
