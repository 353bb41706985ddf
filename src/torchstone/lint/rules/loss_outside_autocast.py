"""A loss outside autocast gets the half-precision output of the model."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.lint.values.analysis import value_at
from torchstone.lint.values.half_operands import NO_GRADIENT
from torchstone.lint.values.reach import half_may_reach
from torchstone.lint.values.value import Kind, Value
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS103",
    "loss-outside-autocast",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="loss `{loss}` is computed outside autocast on an output made inside it",
        zh="损失 `{loss}` 在 autocast 之外计算，其输入却来自 autocast 之内",
    ),
    why=Text(
        en="`{name}` is {dtype} here and the loss is no longer run in float32: {danger}",
        zh="`{name}` 此处为 {dtype}，损失不再以 float32 计算：{danger}",
    ),
    suggest=Text(
        en="move the loss into the autocast block, or pass `{name}.float()`",
        zh="将损失计算移入 autocast 代码块，或传入 `{name}.float()`",
    ),
    title=Text(
        en="The forward pass runs under autocast but the loss is computed outside it, in half "
        "precision",
        zh="前向计算在 autocast 之内，损失却在其外以半精度计算",
    ),
    page=Text(
        en="""\
Under autocast the last layer gives float16 (or bfloat16), and losses are cast up to float32. A loss
outside the block gets the half values as they are: in float16 a squared error overflows from a
difference of 256 on, and small losses keep three digits.

Reported when a value that autocast made half goes into a loss after the block: a loss of
`torch.nn.functional`, a `torch.nn…Loss` object, or something called `criterion` or `loss_fn`. The value
is followed through names, tuples, attributes, containers, helpers and their parameters.

Quiet where it was thought harmless, which `--strict` reports with the reason: an explicit float32 in
front of the loss (`.float()`, `.to(torch.float32)`), no gradients (evaluation), autocast switched off
around the loss on purpose, tests. A model that computes its own loss (`outputs.loss`) is left alone.""",
        zh="""\
autocast 下最后一层输出 float16（或 bfloat16），而损失会被提升到 float32。代码块之外的损失直接拿到半精度
值：float16 下差值达到 256 时平方误差即溢出，小的损失只保留三位有效数字。

当 autocast 使之成为半精度的值在代码块之后传给损失时报告：`torch.nn.functional` 的损失函数、`torch.nn…Loss` 对象，或名为
`criterion`、`loss_fn` 的对象。值会沿名字、元组、属性、容器、辅助函数及其参数追踪。

被认为无害时不报告（`--strict` 会报告并说明原因）：损失之前有显式的 float32（`.float()`、`.to(torch.float32)`）；不求梯度
（评估）；有意在损失周围关闭 autocast；测试。模型自行计算的损失（`outputs.loss`）不检查。""",
    ),
    words=("torch",),
    bad="""\
import torch
import torch.nn.functional as F

def step(model, x, y, scaler):
    with torch.autocast("cuda"):
        out = model(x)
    loss = F.mse_loss(out, y)
    scaler.scale(loss).backward()
""",
    good="""\
@@ -7 +7 @@
-    loss = F.mse_loss(out, y)
+        loss = F.mse_loss(out, y)
""",
)
_LOSS_FUNCTION = pattern(
    r"torch\.nn\.functional\.(?:\w+_loss|cross_entropy|kl_div|binary_cross_entropy_with_logits)$"
)
_LOSS_CLASS = pattern(r"torch\.nn\.(?:modules\.loss\.)?\w+Loss$")
_LOSS_NAME = pattern(r"^(?:criterion|criteria|loss_?fn|loss_?func(?:tion)?|loss_fct)\d*$", re.I)
_LIKE_A_LOSS = pattern(r"loss|criter|entropy|kl_div|nll|bce|mse", re.I)
_SWITCHED_OFF = Text("autocast is switched off around the loss", "损失外层有意关闭了 autocast")
_FLOAT32 = Text("an explicit float32 stands in front of the loss", "损失之前有显式的 float32")
_DANGERS = {
    "float16": Text(
        en="float16 overflows at 65504, so a squared error is inf from a difference of 256 on",
        zh="float16 超过 65504 即溢出，差值达到 256 时平方误差就是 inf",
    ),
    "bfloat16": Text(
        en="bfloat16 keeps 8 bits, so the loss is rounded to 2-3 digits",
        zh="bfloat16 只有 8 位有效位，损失被舍入到两三位有效数字",
    ),
}


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    """Every loss outside autocast: what is it given?"""
    if not scene.project.mentions("autocast"):
        return
    for call in scene.all(ast.Call):
        if call.args and _LIKE_A_LOSS.search(scene.last_name(call.func) or scene.text(call.func)):
            if half_may_reach(scene, call) and _is_loss(call, scene):
                yield from _judge(call, scene)


def _is_loss(call: ast.Call, scene: Scene) -> bool:
    full = scene.qualified(call.func)
    if full:
        return bool(_LOSS_FUNCTION.match(full))
    if _LOSS_NAME.match(scene.last_name(call.func)):
        return True
    made = value_at(scene, call.func)
    return made.kind is Kind.MODULE and bool(_LOSS_CLASS.match(made.name))


def _judge(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """A loss: is one of its arguments what autocast made half?"""
    if scene.region(call).autocast is not None:
        return
    for argument in call.args[:2]:
        value = value_at(scene, argument)
        if value.lowered and value.may_be_half:
            yield _hit(call, argument, value, scene, _harmless(call, value, scene))
            return
        before = _cast_up(argument, scene)
        if before is not None:
            yield _hit(call, argument, before, scene, _FLOAT32)
            return


def _harmless(call: ast.Call, value: Value, scene: Scene) -> Text | None:
    region = scene.region(call)
    if region.without_grad or value.graph is False:
        return NO_GRADIENT
    return _SWITCHED_OFF if region.autocast_off else None


def _cast_up(argument: ast.expr, scene: Scene) -> Value | None:
    """The half value that a cast to float32 stands behind, right where the loss is given it."""
    if not isinstance(argument, ast.Call) or scene.method(argument) not in (
        "float",
        "to",
        "double",
    ):
        return None
    value = value_at(scene, scene.receiver(argument))
    return value if value.lowered and value.may_be_half else None


def _hit(
    call: ast.Call, argument: ast.expr, value: Value, scene: Scene, harmless: Text | None
) -> Hit:
    dtype = value.half_type
    danger = _DANGERS["bfloat16" if dtype == "bfloat16" else "float16"]
    return RULE.at(
        call,
        harmless=harmless,
        why=Text(
            en=RULE.why.en.replace("{danger}", danger.en),
            zh=RULE.why.zh.replace("{danger}", danger.zh),
        ),
        loss=scene.brief(call.func),
        name=scene.brief(argument),
        dtype=dtype,
    )
