"""torch.compile inside the loop or forward compiles, or looks up, time and again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources.scene import FUNCTIONS, Scene

RULE = Rule(
    "TS317",
    "compile-in-hot-path",
    severity=MEDIUM,
    confidence=LIKELY,
    torch_from=(2, 0),
    title=Text(
        en="The model is compiled anew on every step", zh="每一步都重新调用 torch.compile 编译模型"
    ),
    say=Text(en="`{call}` runs on every {where}", zh="`{call}` 在每次{where_zh}都会执行"),
    why=Text(
        en="each call wraps the model anew with its own guards and counters: the first use of each "
        "wrapper checks, and often compiles, again (seconds to minutes)",
        zh="每次调用都会重新包装模型并另建守卫；每个新包装首次使用都要重新检查，往往还要重新编译（数秒到数分钟）",
    ),
    suggest=Text(
        en="compile once, before the loop or in `__init__`, and keep the result",
        zh="在循环之前或 `__init__` 中编译一次，并保存结果",
    ),
    page=Text(
        en="Fires on `torch.compile(...)` as a call inside a training step or a module's "
        "`forward`. Quiet under an `if` (it may run once only), and in other loops: compiling the "
        "blocks of a model one by one before training is good practice.",
        zh="检查训练步或模块 `forward` 中的 `torch.compile(...)` 调用。位于 `if` 之下（可能只执行一次）以及"
        "其他循环中不报告：训练前逐块编译模型是推荐做法。",
    ),
    bad="""\
import torch

def train(model, loader, opt):
    for x in loader:
        fast = torch.compile(model)
        loss = fast(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    good="""\
@@ -3,0 +4 @@
+    fast = torch.compile(model)
@@ -5 +5,0 @@
-        fast = torch.compile(model)
""",
)


@RULE.on_call("compile")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.compile(model)`"""
    if scene.qualified(call.func) != "torch.compile" or not call.args:
        return
    step = scene.in_step_loop(call)
    if not step and scene.forward_of(call) is None:
        return
    for up in scene.ancestors(call):
        if isinstance(up, (ast.If, ast.IfExp, ast.ExceptHandler)):
            return
        if isinstance(up, FUNCTIONS):
            break
    yield RULE.at(
        call,
        confidence=POSSIBLE if scene.is_test else None,
        call=scene.brief(call),
        where="step" if step else "forward",
        where_zh="训练步" if step else "前向",
    )
