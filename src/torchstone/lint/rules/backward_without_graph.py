"""Under no_grad there is no graph to go back through."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.origins import region_of_answer
from torchstone.lint.knowledge.flow import callee, settled
from torchstone.lint.rule import CERTAIN, HIGH, LIKELY, Hit, Rule
from torchstone.sources.regions import ENABLE_GRAD, SET_GRAD
from torchstone.sources.scene import Scene
from torchstone.sources.training import backward_calls

RULE = Rule(
    "TS214",
    "backward-without-graph",
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
        en="take the forward pass and the loss out of {region}", zh="把前向计算和损失移出 {region}"
    ),
    title=Text(
        en="The backward pass fails because the loss was computed under no_grad",
        zh="损失是在 no_grad 下计算的，调用 backward() 会报错",
    ),
    page=Text(
        en="Fires when the expression that made the loss stands inside `no_grad`, `inference_mode` "
        "or `set_grad_enabled(False)`: opened here, by a decorator, or by every caller of the "
        "function. Where `backward()` itself stands does not matter.\n\n"
        "- Quiet when the loss comes in from outside, inside an `enable_grad` block, here or in the "
        "function that makes the loss, when the loss is given `requires_grad` afterwards, and for "
        "objects of a class, which may have a backward of their own.",
        zh="当产生损失的表达式位于 `no_grad`、`inference_mode` 或 `set_grad_enabled(False)` 之内（在此打开、由装饰器"
        "打开，或函数的所有调用方都已打开）时报告；`backward()` 本身写在哪里无关紧要。\n\n"
        "- 不报告：损失来自外部；位于 `enable_grad` 之内，或产生损失的函数自行打开了 `enable_grad`；"
        "之后又为损失设置了 `requires_grad`；类的实例（可能有自己的 backward）。",
    ),
    bad="""\
import torch

def step(model, x, y, criterion):
    with torch.no_grad():
        loss = criterion(model(x), y)
        loss.backward()
""",
    good="""\
import torch

def step(model, x, y, criterion):
    loss = criterion(model(x), y)
    loss.backward()
""",
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
    if _regains(scene, source) or _is_made_leaf(scene, call, source):
        return
    inside = scene.lexical_region(source)
    if inside.without_grad:
        yield RULE.at(call, confidence=CERTAIN, call=scene.brief(call), region=_named(inside))
        return
    if scene.lexical_region(call).without_grad:
        return
    inner = region_of_answer(scene, source)
    if inner is not None and inner.without_grad:
        yield RULE.at(call, call=scene.brief(call), region=_named(inner))
        return
    if scene.function(call) is None:
        return
    around = scene.region(call)
    if around.without_grad and around.via and scene.region(source).without_grad:
        yield RULE.at(call, call=scene.brief(call), region=_named(around))


def _named(region: object) -> str:
    return "inference_mode" if getattr(region, "inference_mode", False) else "no_grad"


def _is_made_leaf(scene: Scene, call: ast.Call, source: ast.expr) -> bool:
    """Whether what goes backward is an object of a class, or is given requires_grad by hand."""
    if isinstance(source, ast.Call) and scene.last_name(source.func)[:1].isupper():
        return True
    for node in scene.inside(source):
        if isinstance(node, ast.keyword) and node.arg == "requires_grad":
            return True
        if isinstance(node, ast.Attribute) and node.attr == "requires_grad_":
            return True
    name = scene.dotted(scene.receiver(call))
    return bool(name) and name in _given_gradients(scene).get(scene.scope(call), ())


def _given_gradients(scene: Scene) -> dict[ast.AST, set[str]]:
    """The names whose `requires_grad` a scope touches."""
    found: dict[ast.AST, set[str]] | None = scene.cache.get("requires_grad")
    if found is None:
        found = scene.cache["requires_grad"] = {}
        for node in scene.all(ast.Attribute):
            if node.attr in ("requires_grad", "requires_grad_"):
                found.setdefault(scene.scope(node), set()).add(scene.dotted(node.value))
    return found


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
