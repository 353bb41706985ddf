"""Clipping gradients that still carry the loss scale."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import last_backward, near, near_after, scaled, starts_its_line
from torchstone.lint.knowledge.flow import before, loop_around
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS107",
    "clip-before-unscale",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{clip}` clips gradients that are still multiplied by the loss scale",
        zh="`{clip}` 裁剪的梯度仍带有损失缩放因子",
    ),
    why=Text(
        en="the scale starts at 65536, so nearly every step is clipped, and to 1/65536 of the norm "
        "that was asked for",
        zh="缩放因子初始为 65536，几乎每一步都会被裁剪，且实际阈值只有设定值的 1/65536",
    ),
    suggest=Text(en="call `{unscale}` before clipping", zh="裁剪前先调用 `{unscale}`"),
    title=Text(
        en="Gradients are clipped while they still carry GradScaler's loss scale",
        zh="梯度裁剪时仍带有 GradScaler 的损失缩放因子",
    ),
    page=Text(
        en="""\
`scaler.scale(loss).backward()` leaves gradients that are too large by the loss scale;
`scaler.step()` divides by it, but clipping runs before. With `max_norm=1.0` and a scale of 65536 the
true norm after clipping is 1.5e-5: training crawls, without an error.

Reported when a function clips after a scaled backward (or before a `scaler.step`) and no
`unscale_` of a scaler stands before the clipping in the same function. `scaler.step` knows that
`unscale_` has run and does not divide twice.

Quiet when the clipping stands in the arm of an `if` that the scaled backward is not in
(`if use_amp: … else: …`), and when the last backward before it is not scaled.""",
        zh="""\
`scaler.scale(loss).backward()` 得到的梯度被放大了缩放因子倍；`scaler.step()` 会除回去，但裁剪在它之前。
`max_norm=1.0`、缩放因子 65536 时，裁剪后的真实范数只有 1.5e-5：训练几乎停滞，却没有报错。

判定：函数在缩放过的 backward 之后（或 `scaler.step` 之前）裁剪梯度，而同一函数中裁剪之前没有 `unscale_`。
`scaler.step` 知道 `unscale_` 已执行，不会重复相除。

裁剪与缩放 backward 位于同一 `if` 的不同分支（`if use_amp: … else: …`），或裁剪前最近的 backward 未缩放时不报告。""",
    ),
    needs=("step",),
    bad="""\
import torch

def train(model, loader, optimizer, scaler):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x, y)
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
""",
    fixed="""\
@@ -8,0 +9 @@
+        scaler.unscale_(optimizer)
""",
)


@RULE.on_call("clip_grad_norm_", "clip_grad_value_")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """The last backward before is scaled, and nothing has unscaled since."""
    steps = list(itertools.islice(near_after(scene, call, "step"), 2))
    last = last_backward(scene, call)
    if (scaled(scene, last) is None) if last is not None else not steps:
        return
    if scene.is_test or any(before(item, call) for item in near(scene, call, "unscale_")):
        return
    scaler, optimizer = _names(steps, last, scene)
    unscale = f"{scaler or 'scaler'}.unscale_({optimizer or 'optimizer'})"
    yield RULE.at(
        call,
        fix=_fix(call, steps, unscale, scene) if scaler and optimizer else None,
        clip=scene.brief(call.func),
        unscale=unscale,
    )


def _names(steps: list[ast.Call], last: ast.Call | None, scene: Scene) -> tuple[str, str]:
    if steps and steps[0].args:
        return scene.dotted(scene.receiver(steps[0])), scene.dotted(steps[0].args[0])
    product = scaled(scene, last) if last is not None else None
    return (scene.dotted(scene.receiver(product)) if product is not None else ""), ""


def _fix(call: ast.Call, steps: list[ast.Call], unscale: str, scene: Scene) -> Fix | None:
    """Right where clipping and stepping run equally often, for one optimizer."""
    statement = scene.statement(call)
    if len(steps) != 1 or statement is None or not starts_its_line(scene, statement):
        return None
    if loop_around(scene, call) is not loop_around(scene, steps[0]):
        return None
    return safe(scene.insert_line_before(statement, unscale))
