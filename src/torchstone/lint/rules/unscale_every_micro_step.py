"""unscale_ may run once per step, not once per micro-batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import is_scaler_call, near
from torchstone.lint.knowledge.flow import before, loop_around
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS121",
    "unscale-every-micro-step",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{unscale}` runs on every micro-batch, but `{step}` only now and then",
        zh="`{unscale}` 每个微批次都执行，而 `{step}` 隔若干批次才执行",
    ),
    why=Text(
        en="the second call before an update raises `RuntimeError: unscale_() has already been "
        "called on this optimizer since the last update()`",
        zh="update 之前的第二次调用会抛出 `RuntimeError: unscale_() has already been called on this "
        "optimizer since the last update()`",
    ),
    suggest=Text(
        en="move `{unscale}` and the clipping into the `if` that holds the step",
        zh="把 `{unscale}` 和梯度裁剪移入执行 step 的 `if` 之内",
    ),
    title=Text(
        en="GradScaler.unscale_ runs more often than step and update, which raises an error",
        zh="GradScaler.unscale_ 的执行次数多于 step 和 update，会报错",
    ),
    page=Text(
        en="""\
With gradient accumulation, gradients must stay scaled until the last micro-batch: adding a scaled
gradient to an unscaled one would be wrong, so a GradScaler refuses a second `unscale_` before
`update()`.

Reported when `unscale_` and `step` of a scaler stand in one loop, and `step` is under an `if` with
a modulo or an accumulation flag in its test that `unscale_` is not under. Quiet when an `update()`
stands in the loop outside of that `if`.""",
        zh="""\
使用梯度累积时，梯度在最后一个微批次之前必须保持缩放状态：把缩放过的梯度加到已还原的梯度上是错误的，因此
GradScaler 拒绝在 `update()` 之前第二次 `unscale_`。

判定：同一循环内既有 scaler 的 `unscale_` 又有 `step`，`step` 位于条件含取模或累积标志的 `if` 之下，而
`unscale_` 不在其下。若该 `if` 之外的循环体内有 `update()`，则不报告。""",
    ),
    bad="""\
import torch

def train(model, loader, optimizer, scaler, accumulate):
    for i, (x, y) in enumerate(loader):
        scaler.scale(model(x, y) / accumulate).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if (i + 1) % accumulate == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
""",
    good="""\
@@ -6,2 +5,0 @@
-        scaler.unscale_(optimizer)
-        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
@@ -8,0 +7,2 @@
+            scaler.unscale_(optimizer)
+            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
""",
)


@RULE.on_call("unscale_")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """An unscale_ in the loop, and every step behind an accumulation test."""
    loop = loop_around(scene, call)
    if loop is None or not is_scaler_call(scene, call, "unscale_"):
        return
    steps = [s for s in near(scene, call, "step") if loop_around(scene, s) is loop]
    if not steps or not all(before(call, s) and _gate(s, call, loop, scene) for s in steps):
        return
    gate = _gate(steps[0], call, loop, scene)
    if gate is None or any(
        loop_around(scene, u) is loop and not scene.within(u, gate)
        for u in near(scene, call, "update")
    ):
        return
    yield RULE.at(call, unscale=scene.brief(call), step=scene.brief(steps[0]))


def _gate(step: ast.Call, call: ast.Call, loop: ast.AST, scene: Scene) -> ast.If | None:
    """The accumulation test around a step that the unscaling is not part of."""
    for up in scene.ancestors(step):
        if up is loop:
            return None
        if isinstance(up, ast.If) and not scene.within(call, up) and _counts(up.test, scene):
            return up
    return None


def _counts(test: ast.expr, scene: Scene) -> bool:
    for part in scene.inside(test):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
            return True
        name = scene.last_name(part).lower()
        if "accum" in name or "sync" in name or name in ("should_step", "is_update_step"):
            return True
    return False
