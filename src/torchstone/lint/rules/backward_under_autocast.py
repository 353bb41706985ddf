"""Backward belongs outside autocast."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import is_backward
from torchstone.lint.rule import CERTAIN, LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS111",
    "backward-under-autocast",
    severity=MEDIUM,
    say=Text(en="`{call}` runs inside the autocast block", zh="`{call}` 位于 autocast 代码块之内"),
    why=Text(
        en="backward already uses the types that autocast chose in forward; under autocast its "
        "matrix products and hooks are cast a second time, to half",
        zh="反向计算会沿用前向时 autocast 选定的类型；放在 autocast 之内，其中的矩阵乘和钩子会再次被降为半精度",
    ),
    suggest=Text(
        en="end the autocast block after the loss and call backward outside",
        zh="在算出损失后结束 autocast 代码块，在块外调用 backward",
    ),
    title=Text(
        en="The backward pass runs under autocast, which casts its products to half a second time",
        zh="反向传播在 autocast 之内运行，其矩阵乘会再次被转换为半精度",
    ),
    page=Text(
        en="""\
torch's documentation: "Backward passes under autocast are not recommended. Backward ops run in the
same type that autocast used for corresponding forward ops." Operators of the backward pass that are
in autocast's list (matrix products of custom functions, gradient penalties, hooks, checkpoint's
recomputation) then run in half although their forward did not.

Reported for a `backward()` that stands lexically inside a `with autocast` block or a function
decorated with it. Quiet under `autocast(enabled=False)` and in tests. `likely` rather than `certain`
when the region may be switched off at run time.""",
        zh="""\
torch 文档写明：不建议在 autocast 之内做反向传播，反向算子会使用对应前向算子的类型。反向中位于 autocast 列表的
算子（自定义函数的矩阵乘、梯度惩罚、钩子、checkpoint 的重算）会以半精度运行，尽管前向并非如此。

判定：`backward()` 在词法上位于 `with autocast` 块内，或位于被其装饰的函数内。`autocast(enabled=False)` 之内以及
测试中不报告；区域可能在运行时关闭时为 `likely`（很可能）而非 `certain`（确定）。""",
    ),
    needs=("autocast",),
    bad="""\
import torch

def step(model, x, y, optimizer):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x, y)
        loss.backward()
    optimizer.step()
""",
    good="""\
@@ -6 +6 @@
-        loss.backward()
+    loss.backward()
""",
)


@RULE.on_call("backward")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """A backward whose own function opens autocast around it."""
    if not is_backward(scene, call) or scene.is_test:
        return
    cast = scene.lexical_region(call).autocast
    if cast is not None and cast.dtype != "float32":
        confidence = CERTAIN if cast.certain else LIKELY
        yield RULE.at(call, confidence=confidence, call=scene.brief(call))
