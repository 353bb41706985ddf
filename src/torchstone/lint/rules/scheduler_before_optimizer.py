"""The learning-rate scheduler must step after the optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import loop_around, made, own_nodes
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.sources.scene import Scene
from torchstone.sources.training import step_calls

RULE = Rule(
    "TS211",
    "scheduler-before-optimizer",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{scheduler}` runs before the optimizer's step",
        zh="`{scheduler}` 在优化器的 step 之前执行",
    ),
    why=Text(
        en="since torch 1.1 the first value of the schedule is skipped this way: every learning "
        "rate comes one round too early",
        zh="自 torch 1.1 起，这样会跳过调度的第一个值：每个学习率都提前一轮生效",
    ),
    suggest=Text(
        en="move `{scheduler}` after the optimizer's step, to the end of the loop",
        zh="把 `{scheduler}` 移到优化器 step 之后、循环末尾",
    ),
    title=Text(
        en="The learning-rate scheduler steps before the optimizer and skips the first value of "
        "the schedule",
        zh="学习率调度器先于优化器执行 step，跳过了调度的第一个值",
    ),
    page=Text(
        en="Fires when `scheduler.step()` stands earlier in a loop's body than the first "
        "`optimizer.step()` of that loop (also inside an inner loop). The scheduler is recognised "
        "by how it was made (`torch.optim.lr_scheduler`) or by its name.\n\n"
        "- Quiet when the call stands under an `if` (`if epoch > 0`), takes arguments (a metric, an "
        "epoch, a diffusion sample), or an optimizer steps before the loop.\n"
        "- torch itself warns about this once at run time.",
        zh="当 `scheduler.step()` 在循环体中先于该循环第一个 `optimizer.step()`（内层循环中的也算）时报告。"
        "根据创建方式（`torch.optim.lr_scheduler`）或名称识别调度器。\n\n"
        "- 不报告：调用位于 `if` 之下（`if epoch > 0`）；带参数（指标、epoch、扩散采样）；循环之前优化器已经 step。\n"
        "- torch 运行时也会警告一次。",
    ),
    bad="""\
import torch

def fit(model, loader, optimizer, lr_scheduler):
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        lr_scheduler.step()
        optimizer.step()
""",
    fixed="""\
@@ -6,0 +7 @@
+        optimizer.step()
@@ -8 +8,0 @@
-        optimizer.step()
""",
    good="""\
import torch

def fit(model, loader, optimizer, epochs):
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            model(x, y).backward()
            optimizer.step()
        scheduler.step()
""",
    needs=("step",),
)


@RULE.on_call("step")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    statement = scene.parent(call)
    if call.args or call.keywords or not isinstance(statement, ast.Expr):
        return
    receiver = scene.receiver(call)
    if receiver is None or not _is_scheduler(scene, receiver):
        return
    loop = loop_around(scene, call)
    if loop is None or scene.parent(statement) is not loop:
        return
    body: list[ast.stmt] = loop.body  # type: ignore[attr-defined]
    steps = step_calls(scene)
    place = body.index(statement)
    if not any(scene.within(step, item) for step in steps for item in body[place + 1 :]):
        return
    if any(scene.within(step, item) for step in steps for item in body[:place]):
        return
    if _before_loop(scene, loop, steps):
        return
    yield RULE.at(call, scheduler=scene.text(call), fix=_fix(scene, statement, body, steps))


def _is_scheduler(scene: Scene, receiver: ast.expr) -> bool:
    source = made(scene, receiver)
    if isinstance(source, ast.Call):
        full = scene.qualified(source.func)
        if full.startswith("torch."):
            return ".lr_scheduler." in full
    name = scene.last_name(receiver).lower()
    return "sched" in name and not any(word in name for word in ("noise", "sample", "temp", "beta"))


def _before_loop(scene: Scene, loop: ast.AST, steps: Sequence[ast.Call]) -> bool:
    scope = scene.scope(loop)
    return any(
        isinstance(node, ast.Call) and node in steps and node.lineno < loop.lineno  # type: ignore[attr-defined]
        for node in own_nodes(scope)
    )


def _fix(
    scene: Scene, statement: ast.Expr, body: list[ast.stmt], steps: Sequence[ast.Call]
) -> Fix | None:
    """After the optimizer's step, and the scaler's update, when all stand in one block."""
    beside = [item for item in body if isinstance(item, ast.Expr) and item.value in steps]
    remove = scene.delete_line(statement)
    if len(beside) != 1 or remove is None:
        return None
    last = _update_after(scene, beside[0], body) or beside[0]
    return unsafe(remove, scene.insert_line_after(last, scene.text(statement)))


def _update_after(scene: Scene, step: ast.Expr, body: list[ast.stmt]) -> ast.Expr | None:
    """The `scaler.update()` that belongs to `scaler.step(optimizer)`."""
    if not isinstance(step.value, ast.Call):
        return None
    scaler = scene.dotted(scene.receiver(step.value))
    for item in body[body.index(step) + 1 :]:
        if isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
            same = scaler and scene.dotted(scene.receiver(item.value)) == scaler
            if same and scene.method(item.value) == "update":
                return item
    return None
