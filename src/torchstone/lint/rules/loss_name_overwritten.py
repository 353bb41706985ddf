"""A loss function whose name is given to its result can be called once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS246",
    "loss-name-overwritten",
    torch_from=(0, 1),
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{name} = {name}(…)` replaces the function by its result in a loop",
        zh="循环中的 `{name} = {name}(…)` 用结果覆盖了函数本身",
    ),
    why=Text(
        en="the second round calls a tensor and ends with a TypeError",
        zh="第二次循环会调用一个张量，以 TypeError 结束",
    ),
    suggest=Text(en="give the result another name", zh="给结果另取一个名字"),
    title=Text(
        en="A loss function is overwritten by its own result in a loop",
        zh="循环中损失函数被自己的结果覆盖",
    ),
    page=Text(
        en="Reported when the name is bound to a function or object outside of the loop and by nothing else in it.",
        zh="当名字在循环外绑定为函数或对象、在循环内没有别的绑定时报告。",
    ),
    words=("torch",),
    bad="""\
import torch

def fit(model, loader, optimizer):
    loss = torch.nn.MSELoss()
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss(model(x), y)
        loss.backward()
        optimizer.step()
""",
    good="""\
@@ -4 +4 @@
-    loss = torch.nn.MSELoss()
+    loss_of = torch.nn.MSELoss()
@@ -7 +7 @@
-        loss = loss(model(x), y)
+        loss = loss_of(model(x), y)
""",
)


@RULE.on(ast.Assign)
def check(statement: ast.Assign, scene: Scene) -> Iterator[Hit]:
    """`loss = loss(output, target)`"""
    call, target = statement.value, statement.targets[0]
    name = scene.dotted(target)
    if not isinstance(call, ast.Call) or len(call.args) < 2 or not name:
        return
    if scene.dotted(call.func) != name:
        return
    if not isinstance(target, ast.Name):
        if _is_layer(scene, target):
            yield RULE.at(statement, name=name)
        return
    loop = scene.enclosing(statement, ast.For, ast.While)
    if not isinstance(loop, (ast.For, ast.While)) or scene.scope(loop) is not scene.scope(
        statement
    ):
        return
    rows = scene.bindings(target)
    again = [row for row in rows if scene.within(row.node, loop)]
    before = [row for row in rows if row.position < (loop.lineno, loop.col_offset)]
    if len(again) == 1 and before and not _leaves(statement, loop):
        yield RULE.at(statement, name=target.id)


def _leaves(statement: ast.stmt, loop: ast.For | ast.While) -> bool:
    """Whether the loop always ends after the first round."""
    return isinstance(loop.body[-1], (ast.Break, ast.Return))


def _is_layer(scene: Scene, target: ast.expr) -> bool:
    """`self.loss`, which the class also binds to a layer or loss of torch."""
    owner, (base, _, field) = scene.class_of(target), scene.dotted(target).rpartition(".")
    if owner is None or base != "self":
        return False
    values = scene.attribute_values(owner, field)
    made = [value.func for value in values if isinstance(value, ast.Call)]
    return any(scene.qualified(func).startswith("torch.nn.") for func in made)
