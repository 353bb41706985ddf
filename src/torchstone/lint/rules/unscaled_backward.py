"""A scaler that steps but never scaled the loss."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import is_scaler_call, last_backward, scaled, scaler_calls
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS122",
    "unscaled-backward",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{backward}` runs on an unscaled loss, but `{step}` expects scaled gradients",
        zh="`{backward}` 使用未缩放的损失，而 `{step}` 期望缩放过的梯度",
    ),
    why=Text(
        en="nothing in this file calls `{scaler}.scale(…)`: the step raises an AssertionError, and "
        "small gradients have already become 0",
        zh="文件中没有任何地方调用 `{scaler}.scale(…)`：step 会抛出 AssertionError，且小梯度早已变为 0",
    ),
    suggest=Text(
        en="write `{scaler}.scale({loss}).backward()`",
        zh="改为 `{scaler}.scale({loss}).backward()`",
    ),
    title=Text(
        en="GradScaler.step raises an error after a backward on an unscaled loss",
        zh="对未缩放的损失做 backward 之后调用 GradScaler.step 会报错",
    ),
    page=Text(
        en="""\
`scaler.step()` divides the gradients by the scale. If the loss was never multiplied by it, the
scaler has no scale yet and raises `AssertionError: Attempted step but _scale is None`.

Reported when a function runs a plain `backward()` and then `step()` of a GradScaler, and the file
never calls `scale()` of a scaler. Quiet when the two stand in different arms of an `if`.""",
        zh="""\
`scaler.step()` 会用缩放因子去除梯度。损失从未乘过缩放因子时，scaler 尚无因子，会抛出
`AssertionError: Attempted step but _scale is None`。

判定：函数先执行普通的 `backward()`，再调用 GradScaler 的 `step()`，而文件中从未调用 scaler 的 `scale()`。两者位于
同一 `if` 的不同分支时不报告。""",
    ),
    needs=("backward",),
    bad="""\
import torch

scaler = torch.amp.GradScaler("cuda")

def train(model, x, optimizer):
    with torch.autocast("cuda"):
        loss = model(x)
    loss.backward()
    scaler.step(optimizer)
    scaler.update()
""",
    fixed="""\
@@ -8 +8 @@
-    loss.backward()
+    scaler.scale(loss).backward()
""",
)


@RULE.on_call("step")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """A scaler's step, a plain backward before it, and no scale anywhere."""
    if not is_scaler_call(scene, call, "step") or scaler_calls(scene, "scale") or scene.is_test:
        return
    if "GradScaler" not in scene.calls:
        return
    last = last_backward(scene, call)
    if last is None or scaled(scene, last) is not None:
        return
    loss, scaler = scene.receiver(last), scene.dotted(scene.receiver(call))
    if _without_scaler(scene, last, scaler):
        return
    wrapped = isinstance(loss, (ast.Name, ast.Attribute)) and not last.args
    receiver = scene.receiver(call)
    yield RULE.at(
        last,
        about=(receiver,) if receiver is not None else (),
        fix=_fix(loss, scaler, scene) if wrapped else None,
        backward=scene.brief(last),
        step=scene.brief(call),
        scaler=scaler or "scaler",
        loss=scene.brief(loss) if loss is not None else "loss",
    )


def _without_scaler(scene: Scene, backward: ast.Call, scaler: str) -> bool:
    """Whether a branch on the scaler itself decides that this backward runs."""
    return any(
        isinstance(up, ast.If)
        and any(scene.dotted(part) == scaler for part in scene.inside(up.test))
        for up in scene.ancestors(backward)
    )


def _fix(loss: ast.expr | None, scaler: str, scene: Scene) -> Fix | None:
    if loss is None or not scaler:
        return None
    return safe(scene.replace(loss, f"{scaler}.scale({scene.text(loss)})"))
