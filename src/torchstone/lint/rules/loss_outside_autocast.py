"""A half-precision output meets a loss that autocast no longer protects."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.origins import region_of_answer
from torchstone.lint.knowledge.amp import reads_of
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources.regions import Autocast
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS103",
    "loss-outside-autocast",
    group="precision",
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

Reported when a name is bound inside a `with autocast` block by calling something, the block has
ended, and the name (or `name.logits`, `name[0]`) goes into a loss of `torch.nn.functional`, a
`torch.nn…Loss` object, or something called `criterion` or `loss_fn`. HIGH when the autocast type is
float16 (CUDA's default) and the loss is known to square its values; MEDIUM for other losses, for
bfloat16 and where the type is not written down: bfloat16 does not overflow, but keeps two to three
digits.

Quiet when the value is cast up (`.float()`, `.to(torch.float32)`, `.double()`), when the model
computes its own loss (`outputs.loss`), in tests; `possible` without gradients (evaluation), where
autocast is switched off around the loss on purpose, and when
the loss is a class or function of the project, which may cast up by itself.""",
        zh="""\
autocast 下最后一层输出 float16（或 bfloat16），而损失会被提升到 float32。代码块之外的损失直接拿到半精度
值：float16 下差值达到 256 时平方误差即溢出，小的损失只保留三位有效数字。

判定：名字在 `with autocast` 块内由某次调用得到，块已结束，该名字（或 `name.logits`、`name[0]`）又传给
`torch.nn.functional` 的损失函数、`torch.nn…Loss` 对象或名为 `criterion`、`loss_fn` 的对象。autocast 类型为
float16（CUDA 默认）且损失会求平方时为 HIGH；其他损失、bfloat16 或未写明类型时为 MEDIUM：bfloat16 不会溢出，但只有两到三位有效数字。

值已提升（`.float()`、`.to(torch.float32)`、`.double()`）、模型自行计算损失（`outputs.loss`）以及测试中不报告；
不求梯度（评估）时、有意在损失周围关闭 autocast 时，以及损失是项目自己的类或函数（可能自行提升精度）时，只按 `possible`（可能）报告。""",
    ),
    words=("autocast",),
    bad=(
        """\
import torch
import torch.nn.functional as F

def step(model, x, y, scaler):
    with torch.autocast("cuda"):
        out = model(x)
    loss = F.mse_loss(out, y)
    scaler.scale(loss).backward()
""",
    ),
    good=(
        """\
import torch
import torch.nn.functional as F

def step(model, x, y, scaler):
    with torch.autocast("cuda"):
        out = model(x)
        loss = F.mse_loss(out, y)
    scaler.scale(loss).backward()
""",
    ),
)
_LOSS_FUNCTION = pattern(
    r"torch\.nn\.functional\.(?:\w+_loss|cross_entropy|kl_div|binary_cross_entropy_with_logits)$"
)
_LOSS_CLASS = pattern(r"torch\.nn\.(?:modules\.loss\.)?\w+Loss$")
_LOSS_NAME = pattern(r"^(?:criterion|criteria|loss_?fn|loss_?func(?:tion)?|loss_fct)\d*$", re.I)
_SQUARING = frozenset(("mse_loss", "MSELoss", "gaussian_nll_loss", "GaussianNLLLoss"))
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


@RULE.on(ast.With, ast.AsyncWith)
def check(block: ast.With | ast.AsyncWith, scene: Scene) -> Iterator[Hit]:
    """Follow what a `with autocast` block binds to the losses after it."""
    cast = _autocast_of(block, scene)
    if cast is None or scene.is_test:
        return
    made = _bound_inside(block, scene)
    if not made:
        return
    for name in made:
        for read in reads_of(scene, name):
            if not scene.within(read, block):
                yield from _judge(read, cast, scene)


@RULE.on(ast.Assign)
def check_answer(statement: ast.Assign, scene: Scene) -> Iterator[Hit]:
    """`out = forward(model, x)`, where `forward` computes under autocast"""
    target, value = statement.targets[0], statement.value
    if not isinstance(value, ast.Call) or not isinstance(target, ast.Name) or scene.is_test:
        return
    reads = [read for read in reads_of(scene, target) if _is_loss_of(read, scene)]
    region = region_of_answer(scene, value) if reads else None
    if region is None or region.autocast is None or scene.lexical_region(value).autocast:
        return
    for read in reads:
        yield from _judge(read, region.autocast, scene)


def _is_loss_of(read: ast.Name, scene: Scene) -> bool:
    up = scene.parent(read)
    return isinstance(up, ast.Call) and read in up.args and _is_loss(up, scene)


def _autocast_of(block: ast.With | ast.AsyncWith, scene: Scene) -> Autocast | None:
    mentioned = any(
        "autocast" in (scene.last_name(part), getattr(part, "attr", ""))
        for item in block.items
        for part in scene.inside(item.context_expr)
    )
    return scene.lexical_region(block.body[0]).autocast if mentioned else None


def _bound_inside(block: ast.With | ast.AsyncWith, scene: Scene) -> list[ast.Name]:
    """Names that the block binds to the result of calling a model."""
    return [
        target
        for part in scene.inside(block)
        if isinstance(part, ast.Assign)
        and isinstance(part.value, ast.Call)
        and scene.scope(part) is scene.scope(block)
        and scene.is_model(part.value.func)
        for target in part.targets
        if isinstance(target, ast.Name)
    ]


def _is_loss(call: ast.Call, scene: Scene) -> bool:
    full = scene.qualified(call.func)
    if full:
        return bool(_LOSS_FUNCTION.match(full))
    if _LOSS_NAME.match(scene.last_name(call.func)):
        return True
    made = scene.origin(call.func)
    return isinstance(made, ast.Call) and bool(_LOSS_CLASS.match(scene.qualified(made.func)))


def _judge(read: ast.Name, cast: Autocast, scene: Scene) -> Iterator[Hit]:
    """A read of the half output: is it what a loss is given?"""
    argument: ast.expr = read
    up = scene.parent(argument)
    while isinstance(up, (ast.Attribute, ast.Subscript)) and up.value is argument:
        argument, up = up, scene.parent(up)
    if not isinstance(up, ast.Call) or argument not in up.args or not _is_loss(up, scene):
        return
    if isinstance(argument, ast.Attribute) and argument.attr == "loss":
        return
    if argument is not up.args[0] and _base(up.args[0]) == read.id:
        return  # reported for the first of its arguments
    region = scene.region(up)
    if region.autocast is not None:
        return
    dtype = cast.dtype if cast.dtype in _DANGERS else ""
    danger = _DANGERS[dtype or "float16"]
    # `autocast(enabled=False)` around the loss is a choice
    doubtful = region.without_grad or region.autocast_off or _is_of_project(up.func, scene)
    overflows = dtype == "float16" and cast.certain and _squares(up, scene)
    yield RULE.at(
        up,
        severity=HIGH if overflows else MEDIUM,
        confidence=POSSIBLE if doubtful else LIKELY,
        why=Text(
            en=RULE.why.en.replace("{danger}", danger.en),
            zh=RULE.why.zh.replace("{danger}", danger.zh),
        ),
        loss=scene.brief(up.func),
        name=scene.brief(argument),
        dtype=dtype or "half",
    )


def _squares(loss: ast.Call, scene: Scene) -> bool:
    """Whether a loss is known to square its values; a cross entropy adds up in float32 by itself."""
    source = scene.origin(loss.func)
    full = scene.qualified(source.func if isinstance(source, ast.Call) else loss.func)
    return full.rpartition(".")[2] in _SQUARING


def _base(node: ast.expr) -> str:
    """`out` of `out`, `out.logits` and `out[0]`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_of_project(func: ast.expr, scene: Scene) -> bool:
    """Whether the loss is the project's own, and may cast up by itself."""
    made = scene.origin(func)
    named = made.func if isinstance(made, ast.Call) else func
    return scene.project.definition(scene, named, scene.qualified(named)) is not None
