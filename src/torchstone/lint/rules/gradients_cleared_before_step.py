"""zero_grad between backward and step throws the gradients away."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import CERTAIN, HIGH, Hit, Rule, safe
from torchstone.sources.scene import Scene
from torchstone.sources.training import backward_calls, step_calls

RULE = Rule(
    "TS221",
    "gradients-cleared-before-step",
    severity=HIGH,
    confidence=CERTAIN,
    say=Text(
        en="`{clear}` stands between backward() and step()",
        zh="`{clear}` 位于 backward() 与 step() 之间",
    ),
    why=Text(
        en="step() finds no gradients (or zeros) and changes nothing but momentum and weight decay: "
        "the model does not learn",
        zh="step() 时梯度已为空（或为零），除动量和权重衰减外什么都不更新：模型不会学习",
    ),
    suggest=Text(
        en="move `{clear}` before backward() or after step()",
        zh="把 `{clear}` 移到 backward() 之前或 step() 之后",
    ),
    title=Text(
        en="Gradients are cleared between backward() and step(), so the step does nothing",
        zh="在 backward() 与 step() 之间清空了梯度，这一步什么也没更新",
    ),
    page=Text(
        en="Fires when one block holds, in this order, `backward()`, the optimizer's `zero_grad()` "
        "and the same optimizer's `step()`, with no other backward in between.\n\n"
        "- Quiet for another optimizer's zero_grad (GANs) and when any of the three stands in a "
        "branch of its own.",
        zh="当同一代码块中依次出现 `backward()`、优化器的 `zero_grad()`、同一优化器的 `step()`，且中间没有其他 "
        "backward 时报告。\n\n"
        "- 清空的是另一个优化器（GAN），或三者之一位于单独的分支时，不报告。",
    ),
    bad="""\
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        loss = model(x, y)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
""",
    fixed="""\
@@ -5,0 +6 @@
+        optimizer.zero_grad()
@@ -7 +7,0 @@
-        optimizer.zero_grad()
""",
    needs=("backward", "step"),
)


@RULE.on_call("zero_grad")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    statement, receiver = scene.parent(call), scene.receiver(call)
    name = scene.dotted(receiver)
    if not isinstance(statement, ast.Expr) or not name or not scene.is_optimizer(receiver):
        return
    block = scene.block_of(statement)
    backward, place = backward_calls(scene), block.index(statement)
    went = None
    for item in reversed(block[:place]):
        if _steps(scene, item, name):
            return
        if isinstance(item, ast.Expr) and item.value in backward:
            went = item
            break
    if went is None:
        return
    for item in block[place + 1 :]:
        if backward.inside(scene, item):
            return
        if isinstance(item, ast.Expr) and _steps(scene, item, name):
            remove = scene.delete_line(statement)
            add = scene.insert_line_before(went, scene.text(statement))
            there = any(_clears(scene, other, name) for other in block[: block.index(went)])
            fix = safe(*([remove] if there else [remove, add])) if remove is not None else None
            yield RULE.at(call, clear=scene.text(call), fix=fix)
            return


def _clears(scene: Scene, item: ast.stmt, name: str) -> bool:
    """Whether a statement clears the gradients already."""
    call = item.value if isinstance(item, ast.Expr) else None
    return isinstance(call, ast.Call) and scene.dotted(call.func) == f"{name}.zero_grad"


def _steps(scene: Scene, item: ast.stmt, name: str) -> bool:
    """Whether a statement steps the optimizer of this name."""
    return any(
        name in (scene.dotted(scene.receiver(step)), *map(scene.dotted, step.args[:1]))
        for step in step_calls(scene).inside(scene, item)
    )
