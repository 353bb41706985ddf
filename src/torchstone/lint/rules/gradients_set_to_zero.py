"""Filling gradients with zeros costs a write, and a read at the next backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import LOW, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

_DEFAULT_SINCE = (2, 0)
_OLD = Text(
    en="`{call}` fills every gradient with zeros: before torch 2.0 that is the default",
    zh="`{call}` 会把所有梯度填零：这是 torch 2.0 之前的默认行为",
)

RULE = Rule(
    "TS308",
    "gradients-set-to-zero",
    severity=LOW,
    aliases=("TOR402",),
    torch_from=(1, 7),
    title=Text(
        en="Gradients are filled with zeros instead of being dropped", zh="梯度被填零而不是直接丢弃"
    ),
    say=Text(
        en="`{call}` fills every gradient with zeros instead of dropping it",
        zh="`{call}` 会把所有梯度填零，而不是直接丢弃",
    ),
    why=Text(
        en="one more write of every gradient, an addition instead of an assignment in the next "
        "backward, and the gradients' memory stays taken during the forward",
        zh="每个梯度多写一遍，下次反向传播由赋值变为累加，而且前向期间梯度仍占用显存",
    ),
    suggest=Text(
        en="use `zero_grad(set_to_none=True)`, the default since torch 2.0",
        zh="使用 `zero_grad(set_to_none=True)`，自 torch 2.0 起这已是默认值",
    ),
    page=Text(
        en="Fires on `zero_grad(set_to_none=False)` of an optimizer or a module; for a project "
        "whose oldest torch is below 2.0 also on `zero_grad()`, which filled with zeros then.\n\n"
        "The two differ where a parameter gets no gradient in a step: with zeros the optimizer "
        "still applies momentum and weight decay to it, with `None` it skips the parameter; and "
        "code that reads `p.grad` after `zero_grad` must expect `None`. For that reason the fix is "
        "unsafe.",
        zh="检查优化器或模块的 `zero_grad(set_to_none=False)`；若项目支持的最低 torch 版本低于 2.0，也检查"
        "当时会填零的 `zero_grad()`。\n\n"
        "两者的差别在于某一步没有得到梯度的参数：填零时优化器仍会对它施加动量与权重衰减，为 `None` 时则跳过；"
        "在 `zero_grad` 之后读取 `p.grad` 的代码须能处理 `None`。修复因此标记为不安全。",
    ),
    bad="""\
import torch

def step(optimizer, loss):
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
""",
    fixed="""\
@@ -4 +4 @@
-    optimizer.zero_grad(set_to_none=False)
+    optimizer.zero_grad(set_to_none=True)
""",
)


@RULE.on_call("zero_grad")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`optimizer.zero_grad(set_to_none=False)`"""
    receiver = scene.receiver(call)
    if receiver is None or scene.has_star(call):
        return
    given = scene.argument(call, 0, "set_to_none")
    if given is None:
        old = scene.project.torch is not None and scene.project.torch < _DEFAULT_SINCE
        if old and _keeps_gradients(scene, receiver):
            yield RULE.at(
                call,
                say=_OLD,
                fix=unsafe(scene.add_keyword(call, "set_to_none=True")),
                call=scene.brief(call),
            )
    elif scene.literal(given) is False and _keeps_gradients(scene, receiver):
        plain = isinstance(given, ast.Constant)
        fix = unsafe(scene.replace(given, "True")) if plain else None
        yield RULE.at(call, fix=fix, call=scene.brief(call))


def _keeps_gradients(scene: Scene, receiver: ast.expr) -> bool:
    return scene.is_optimizer(receiver) or scene.is_model(receiver)
