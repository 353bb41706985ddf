"""Loss scaling guards against float16's small range; bfloat16 has float32's."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import autocasts
from torchstone.lint.rule import LIKELY, LOW, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS109",
    "scaler-with-bfloat16",
    severity=LOW,
    confidence=LIKELY,
    say=Text(
        en="GradScaler is used although autocast runs in bfloat16",
        zh="autocast 使用 bfloat16，却仍启用 GradScaler",
    ),
    why=Text(
        en="bfloat16 has float32's range, so nothing underflows; the scaler costs a check of every "
        "gradient and a host sync each step, and skips steps once its scale has grown too large",
        zh="bfloat16 的范围与 float32 相同，不会下溢；GradScaler 每步都要检查所有梯度并同步主机，"
        "缩放因子增长过大后还会跳过更新",
    ),
    suggest=Text(
        en="remove the GradScaler, or pass enabled=(dtype is torch.float16)",
        zh="去掉 GradScaler，或传入 enabled=(dtype is torch.float16)",
    ),
    title=Text(
        en="A GradScaler is used although autocast runs in bfloat16, which needs no loss scaling",
        zh="autocast 使用 bfloat16，无需损失缩放，却仍启用 GradScaler",
    ),
    page=Text(
        en="""\
Loss scaling lifts gradients above float16's smallest value, 6e-8. bfloat16 goes down to 1e-38, like
float32. The scaler doubles its scale after every 2000 clean steps; with bfloat16 nothing stops it
until the loss itself overflows, and those steps are thrown away.

Reported when every autocast of the file whose type is written down says bfloat16, at least one
does, and a GradScaler is made without `enabled=`. Quiet when any autocast of the file has another
type or one that is chosen at run time, and when the scaler is switched by a flag.""",
        zh="""\
损失缩放的目的是把梯度抬到 float16 的最小值 6e-8 以上；bfloat16 与 float32 一样可表示到 1e-38。GradScaler 每
2000 个正常步就把缩放因子翻倍，在 bfloat16 下会一直增长到损失自身溢出，那些步的更新会被丢弃。

判定：文件中写明类型的 autocast 全部为 bfloat16 且至少有一个，而 GradScaler 创建时没有 `enabled=`。文件中任一
autocast 是其他类型或运行时决定类型，或 scaler 由开关控制时，不报告。""",
    ),
    needs=("autocast", "bfloat16"),
    bad="""\
import torch

scaler = torch.amp.GradScaler("cuda")

def step(model, x, optimizer):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
""",
    good="""\
import torch

def step(model, x, optimizer):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
)


@RULE.on_call("GradScaler")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """A scaler that is always on, and only bfloat16 around it."""
    if scene.has_star(call):
        return
    enabled = scene.keyword(call, "enabled")
    switched = scene.literal(enabled) if enabled is not None else True
    if switched is not True:
        return
    if any(isinstance(up, (ast.If, ast.IfExp)) for up in scene.ancestors(call)):
        return
    dtypes = {cast.dtype for cast in autocasts(scene)}
    if dtypes == {"bfloat16"}:
        yield RULE.at(call)
