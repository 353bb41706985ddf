"""A GradScaler that is never updated works once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import is_scaler_call, receivers, scaler_calls, starts_its_line
from torchstone.lint.rule import CERTAIN, HIGH, POSSIBLE, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS108",
    "scaler-step-without-update",
    severity=HIGH,
    say=Text(
        en="`{step}` is never followed by `{scaler}.update()`",
        zh="`{step}` 之后从未调用 `{scaler}.update()`",
    ),
    why=Text(
        en="the second step raises `RuntimeError: step() has already been called since the last "
        "update()`, and the scale never adapts to overflows",
        zh="第二步会抛出 `RuntimeError: step() has already been called since the last update()`，"
        "缩放因子也永远不会随溢出调整",
    ),
    suggest=Text(
        en="call `{scaler}.update()` once per iteration, after the last `{scaler}.step()`",
        zh="每次迭代在最后一个 `{scaler}.step()` 之后调用一次 `{scaler}.update()`",
    ),
    title=Text(
        en="GradScaler.step is called but GradScaler.update never is, so the loss scale never "
        "changes",
        zh="调用了 GradScaler.step 却从未调用 GradScaler.update，损失缩放因子永远不变",
    ),
    page=Text(
        en="""\
`update()` closes an iteration of a GradScaler: it lowers the scale after an overflow, raises it
after 2000 clean steps, and forgets that `step()` has run. Without it the second `step()` raises.

Reported when a file calls `step(optimizer)` on a GradScaler and no `update()` on anything of that
name. `possible` when the scaler is a parameter of the function: the caller may update it.

With several optimizers one `update()` after all the steps is right; the fix is offered where there
is one step only.""",
        zh="""\
`update()` 结束 GradScaler 的一次迭代：溢出后降低缩放因子，连续 2000 步正常后提高，并清除 `step()` 已执行的
标记。缺少它，第二次 `step()` 就会报错。

判定：文件对 GradScaler 调用了 `step(optimizer)`，却没有对同名对象调用 `update()`。scaler 是函数参数时只按
`possible`（可能）报告，因为调用者可能会更新它。

有多个优化器时，在全部 step 之后调用一次 `update()` 即可；只有一个 step 时才提供自动修复。""",
    ),
    bad="""\
import torch

scaler = torch.amp.GradScaler("cuda")

def train(model, loader, optimizer):
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = model(x, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        optimizer.zero_grad()
""",
    fixed="""\
@@ -10,0 +11 @@
+        scaler.update()
""",
)


@RULE.on_call("step")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`scaler.step(optimizer)` in a file that never updates this scaler."""
    if len(call.args) != 1 or not is_scaler_call(scene, call, "step"):
        return
    scaler = scene.receiver(call)
    name = scene.dotted(scaler)
    updated = {chain.rpartition(".")[2] for chain in receivers(scene, "update")}
    if not name or name.rpartition(".")[2] in updated:
        return
    if "GradScaler" not in scene.calls and not scaler_calls(scene, "scale"):
        confidence = POSSIBLE
    else:
        confidence = POSSIBLE if _is_parameter(scaler, scene) or scene.is_test else CERTAIN
    yield RULE.at(
        call,
        confidence=confidence,
        fix=_fix(call, name, scene),
        step=scene.brief(call),
        scaler=name,
    )


def _is_parameter(node: ast.expr | None, scene: Scene) -> bool:
    return isinstance(node, ast.Name) and any(
        binding.how == "parameter" for binding in scene.bindings(node)
    )


def _fix(call: ast.Call, name: str, scene: Scene) -> Fix | None:
    statement = scene.statement(call)
    if len(scaler_calls(scene, "step")) != 1 or not isinstance(statement, (ast.Expr, ast.Assign)):
        return None
    if not starts_its_line(scene, statement) or ";" in scene.lines[statement.lineno - 1]:
        return None
    return safe(scene.insert_line_after(statement, f"{name}.update()"))
