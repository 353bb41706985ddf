"""An optimizer that steps on gradients nobody has unscaled."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import last_backward, near, scaled, scaler_calls
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS123",
    "step-with-scaled-gradients",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{step}` uses gradients that still carry the loss scale",
        zh="`{step}` 使用的梯度仍带有损失缩放因子",
    ),
    why=Text(
        en="the loss was scaled (by 65536 at first), and `{scaler}.step()` is what divides it out "
        "and skips steps with inf: here updates are 65536 times too large, and inf reaches the "
        "weights",
        zh="损失经过缩放（初始 65536 倍），而除回缩放因子、跳过含 inf 的步都由 `{scaler}.step()` 完成："
        "此处更新量大 65536 倍，inf 也会写进权重",
    ),
    suggest=Text(
        en="write `{scaler}.step({optimizer})` and then `{scaler}.update()`",
        zh="改为 `{scaler}.step({optimizer})`，随后调用 `{scaler}.update()`",
    ),
    title=Text(
        en="The optimizer steps with gradients that still carry the loss scale",
        zh="优化器直接用仍带损失缩放因子的梯度执行 step",
    ),
    page=Text(
        en="""\
Adam hides the factor (it divides by the gradient's own size) until the scale changes or a gradient
is inf; SGD does not.

Reported when a function runs `scaler.scale(loss).backward()` and then `optimizer.step()`, and the
file calls neither `step` nor `unscale_` of a scaler. Quiet when the two stand in different arms of
an `if`, or another, unscaled backward stands between them.""",
        zh="""\
Adam 会掩盖这个倍数（它除以梯度自身的大小），直到缩放因子变化或梯度出现 inf；SGD 则不会。

判定：函数执行 `scaler.scale(loss).backward()` 之后调用 `optimizer.step()`，而文件中既没有 scaler 的 `step` 也没有
`unscale_`。两者位于同一 `if` 的不同分支，或中间另有未缩放的 backward 时不报告。""",
    ),
    needs=("backward", "scale"),
    bad="""\
import torch

def train(model, x, optimizer, scaler):
    with torch.autocast("cuda"):
        loss = model(x)
    scaler.scale(loss).backward()
    optimizer.step()
    scaler.update()
""",
    fixed="""\
@@ -7 +7 @@
-    optimizer.step()
+    scaler.step(optimizer)
""",
)


@RULE.on_call("step")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """A plain step whose last backward was scaled, in a file that never unscales."""
    if not scene.is_optimizer(scene.receiver(call)) or scene.is_test:
        return
    if scaler_calls(scene, "step") or scaler_calls(scene, "unscale_"):
        return
    last = last_backward(scene, call)
    product = scaled(scene, last) if last is not None else None
    if product is None:
        return
    scaler, optimizer = scene.dotted(scene.receiver(product)), scene.dotted(scene.receiver(call))
    owners = (scene.receiver(product), scene.receiver(call))
    yield RULE.at(
        call,
        about=tuple(item for item in owners if item is not None),
        fix=_fix(call, scaler, optimizer, scene),
        step=scene.brief(call),
        scaler=scaler or "scaler",
        optimizer=optimizer or "optimizer",
    )


def _fix(call: ast.Call, scaler: str, optimizer: str, scene: Scene) -> Fix | None:
    """Right where the scaler is already updated after each step."""
    updated = any(near(scene, call, "update"))
    if not scaler or not optimizer or call.args or call.keywords or not updated:
        return None
    return safe(scene.replace(call, f"{scaler}.step({optimizer})"))
