"""An optimizer made anew on every step forgets its state."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import loop_around, own_nodes
from torchstone.lint.knowledge.layers import OPTIMIZERS
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene
from torchstone.sources.training import backward_calls, step_calls

RULE = Rule(
    "TS225",
    "optimizer-made-in-step-loop",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="{optimizer} is made anew on every training step", zh="每个训练步都新建一个 {optimizer}"
    ),
    why=Text(
        en="momentum, second moments and step counts start from zero each time: Adam becomes sign "
        "descent with step size lr, and a scheduler tied to the old object does nothing",
        zh="动量、二阶矩和步数每次都从零开始：Adam 退化为步长为 lr 的符号下降，绑定在旧对象上的调度器也不起作用",
    ),
    suggest=Text(
        en="make the optimizer once before the loop; change the rate through "
        "`optimizer.param_groups` or a scheduler",
        zh="在循环之前只创建一次优化器；通过 `optimizer.param_groups` 或调度器修改学习率",
    ),
    title=Text(
        en="An optimizer is made anew on every step and forgets its state",
        zh="每个训练步都新建优化器，其状态随之丢失",
    ),
    page=Text(
        en="Fires when a torch optimizer is made directly in the loop body that also holds "
        "backward and its `step()`, over parameters that live outside the loop.\n\n"
        "- Quiet when the model or tensor it optimises is made in the same loop (one fit per item), "
        "when an inner loop does the stepping, and under an `if`.\n"
        "- MEDIUM for SGD without momentum, which has no state: only time is lost.",
        zh="当 torch 优化器直接在循环体内创建，同一循环体还包含 backward 和它的 `step()`，而被优化的参数在循环之外时报告。\n\n"
        "- 不报告：被优化的模型或张量也在该循环内创建（每个样本单独拟合）；由内层循环执行 step；位于 `if` 之下。\n"
        "- 不带动量的 SGD 没有状态，只是浪费时间，为 MEDIUM。",
    ),
    bad="""\
import torch

def train(model, loader, rate):
    for x, y in loader:
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
""",
    good="""\
@@ -3,0 +4 @@
+    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
@@ -5 +5,0 @@
-        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
""",
    needs=("backward", "step"),
)


@RULE.on_call(*OPTIMIZERS)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    full = scene.qualified(call.func)
    statement = scene.parent(call)
    if not full.startswith("torch.optim.") or not isinstance(statement, ast.Assign):
        return
    loop = loop_around(scene, call)
    if loop is None or scene.parent(statement) is not loop or not call.args:
        return
    name = scene.dotted(statement.targets[0])
    if not any(
        loop_around(scene, item) is loop for item in backward_calls(scene).inside(scene, loop)
    ):
        return
    if not any(
        loop_around(scene, step) is loop
        and name in (scene.dotted(scene.receiver(step)), *map(scene.dotted, step.args[:1]))
        for step in step_calls(scene)
    ):
        return
    if _made_here(scene, loop, call.args[0]):
        return
    short = full.rpartition(".")[2]
    plain = short == "SGD" and scene.argument(call, 2, "momentum") is None
    yield RULE.at(call, optimizer=short, severity=MEDIUM if plain else HIGH)


def _made_here(scene: Scene, loop: ast.AST, given: ast.expr) -> bool:
    """Whether something that the optimizer gets is bound inside the loop."""
    used = {scene.dotted(node) for node in scene.inside(given)} - {"", "self"}
    return any(
        scene.dotted(node) in used
        for node in own_nodes(loop)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store)
    )
