"""Moving a model on every step walks over all its parameters for nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.tensors import goes_to_device, goes_to_host
from torchstone.lint.rule import LIKELY, LOW, POSSIBLE, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS319",
    "module-moved-in-step-loop",
    severity=LOW,
    confidence=LIKELY,
    title=Text(
        en="A model is moved to the device on every training step", zh="每个训练步都把模型搬到设备"
    ),
    say=Text(en="`{call}` moves the model on every step", zh="`{call}` 每个训练步都在搬运模型"),
    why=Text(
        en="even when everything is in place already, it visits every parameter and buffer in "
        "Python, about 6 µs each (1.7 ms for 288 parameters), before the step can start",
        zh="即使模型已在设备上，也要用 Python 逐个访问参数与缓冲区，每个约 6 微秒（288 个参数为 1.7 毫秒），之后才能开始这一步",
    ),
    suggest=Text(
        en="move the model once, before the loop and before the optimizer is made",
        zh="在循环之前、创建优化器之前搬运一次",
    ),
    page=Text(
        en="Fires on `.to(device)` and `.cuda()` of a model where it runs on every training step. "
        "Quiet when the loop also brings the model back to the CPU (offloading on purpose), when "
        "the loop makes the model, under `if step % n`, and in tests.",
        zh="检查每个训练步都会执行的模型 `.to(device)` 与 `.cuda()`。若循环内又把模型搬回 CPU（有意卸载）、"
        "模型在循环内创建、位于 `if step % n` 之下或属于测试代码，则不报告。",
    ),
    needs=("backward",),
    bad="""\
import torch

def train(model, loader, opt, device):
    for x in loader:
        model.to(device)
        loss = model(x.to(device)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    good="""\
@@ -3,0 +4 @@
+    model.to(device)
@@ -5 +5,0 @@
-        model.to(device)
""",
)


@RULE.on_call("to", "cuda")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`model.to(device)`"""
    receiver = scene.receiver(call)
    if receiver is None or not scene.in_step_loop(call) or not goes_to_device(scene, call):
        return
    name = scene.dotted(receiver)
    if not name or not scene.is_model(receiver):
        return
    loop = scene.step_loop(call)
    assert loop is not None
    for node in scene.inside(loop):
        if isinstance(node, ast.Call) and goes_to_host(scene, node):
            if scene.dotted(scene.receiver(node)) == name:
                return
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            statement = scene.statement(node)
            if not (isinstance(statement, ast.Assign) and statement.value is call):
                return
    yield RULE.at(call, confidence=POSSIBLE if scene.is_test else None, call=scene.brief(call))
