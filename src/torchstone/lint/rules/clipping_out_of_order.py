"""Gradients are clipped between backward and step, or not at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule, safe
from torchstone.sources.scene import Scene
from torchstone.sources.training import Calls, backward_calls, step_calls

RULE = Rule(
    "TS220",
    "clipping-out-of-order",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{clip}` runs {when} and clips nothing that is used",
        zh="`{clip}` 在{when}执行，裁剪结果不会被用到",
    ),
    why=Text(
        en="the optimizer reads .grad in step(): only what is clipped after backward() and before "
        "step() counts, so updates are not limited at all",
        zh="优化器在 step() 中读取 .grad：只有在 backward() 之后、step() 之前裁剪才有效，因此更新量完全没有受到限制",
    ),
    suggest=Text(en="put it between backward() and step()", zh="放到 backward() 与 step() 之间"),
    title=Text(
        en="Gradient clipping before backward() or after step() has no effect",
        zh="梯度裁剪放在 backward() 之前或 step() 之后，不起作用",
    ),
    page=Text(
        en="Fires when `clip_grad_norm_` or `clip_grad_value_` stands in the same block as one "
        "backward and one optimizer step, but not between them.\n\n"
        "- Quiet when the value is used (a norm that is only measured), when `max_norm` is "
        "infinite, and when another clip stands in the right place.\n"
        "- With a GradScaler, call `scaler.unscale_(optimizer)` before the clip.",
        zh="当 `clip_grad_norm_` 或 `clip_grad_value_` 与一个 backward、一个优化器 step 位于同一代码块，"
        "却不在两者之间时报告。\n\n"
        "- 不报告：返回值被使用（只是测量范数）；`max_norm` 为无穷大；正确位置另有一次裁剪。\n"
        "- 使用 GradScaler 时，裁剪前先调用 `scaler.unscale_(optimizer)`。",
    ),
    bad="""\
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
""",
    fixed="""\
@@ -7,0 +8 @@
+        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
@@ -9 +9,0 @@
-        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
""",
    needs=("backward", "step"),
)
_BEFORE = Text("before backward()", "backward() 之前")
_AFTER = Text("after step()", "step() 之后")


@RULE.on_call("clip_grad_norm_", "clip_grad_value_")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    statement = scene.parent(call)
    if not isinstance(statement, ast.Expr):
        return
    if not scene.qualified(call.func).startswith("torch.nn.utils."):
        return
    block = scene.block_of(statement)
    backward = _holding(scene, block, backward_calls(scene))
    steps = _holding(scene, block, step_calls(scene))
    clips = _holding(scene, block, _clips(scene))
    place = block.index(statement)
    if len(backward) != 1 or len(steps) != 1 or len(clips) != 1 or backward[0] >= steps[0]:
        return
    if backward[0] < place < steps[0]:
        return
    when = _BEFORE if place < backward[0] else _AFTER
    say = Text(RULE.say.en.replace("{when}", when.en), RULE.say.zh.replace("{when}", when.zh))
    fix: Fix | None = None
    remove = scene.delete_line(statement)
    if remove is not None:
        add = scene.insert_line_before(block[steps[0]], scene.text(statement))
        fix = safe(remove, add)
    yield RULE.at(call, say=say, clip=scene.brief(call, 40), fix=fix)


def _clips(scene: Scene) -> Calls:
    found: Calls | None = scene.cache.get("clips")
    if found is None:
        names = ("clip_grad_norm_", "clip_grad_value_")
        rows = [call for name in names for call in scene.calls.get(name, ())]
        found = scene.cache["clips"] = Calls(rows)
    return found


def _holding(scene: Scene, block: list[ast.stmt], calls: Calls) -> list[int]:
    """The places of a block's statements that are, or hold, one of these calls."""
    return [number for number, item in enumerate(block) if calls.inside(scene, item)]
