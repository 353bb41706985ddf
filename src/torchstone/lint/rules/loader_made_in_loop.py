"""A DataLoader that is made anew in a loop starts its workers anew as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.loaders import is_loader
from torchstone.lint.rule import LIKELY, LOW, POSSIBLE, Hit, Rule
from torchstone.sources.scene import LOOPS, SCOPES, Scene

RULE = Rule(
    "TS318",
    "loader-made-in-loop",
    severity=LOW,
    confidence=LIKELY,
    title=Text(
        en="A DataLoader is made anew in every turn of a loop", zh="每次循环都重新创建 DataLoader"
    ),
    say=Text(
        en="this DataLoader is made anew in every turn of the loop in line {line}, with the same "
        "arguments",
        zh="第 {line} 行的循环每次都用相同参数重新创建该 DataLoader",
    ),
    why=Text(
        en="its workers start anew, copy the dataset and fill their queues from empty, while the "
        "device waits; shuffling needs no new loader",
        zh="工作进程要重新启动、复制数据集并从空队列开始预取，其间设备一直等待；重新打乱并不需要新的 loader",
    ),
    suggest=Text(
        en="make it once before the loop; `shuffle=True` draws a new order for every pass",
        zh="在循环之前创建一次；`shuffle=True` 每次遍历都会重新打乱",
    ),
    page=Text(
        en="Fires on `DataLoader(...)` inside a loop when neither the loop's own variable nor "
        "anything bound in its body is among the arguments, so that every turn makes the same "
        "loader. Quiet under an `if`, and in tests. A fixed `generator=` made before the loop is "
        "shared and advances; it is no reason for a new loader.",
        zh="检查循环内的 `DataLoader(...)`，且参数既不含循环变量，也不含循环体内绑定的名字，即每次创建的都是"
        "同样的 loader。位于 `if` 之下以及测试代码不报告。循环前创建的 `generator=` 会随遍历推进，并不是"
        "重新创建的理由。",
    ),
    bad="""\
from torch.utils.data import DataLoader

def train(dataset, step):
    for epoch in range(10):
        loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8)
        for batch in loader:
            step(batch)
""",
    good="""\
@@ -3,0 +4,3 @@
+    loader = DataLoader(
+        dataset, batch_size=64, shuffle=True, num_workers=8, persistent_workers=True
+    )
@@ -5 +7,0 @@
-        loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8)
""",
)


@RULE.on_call("DataLoader")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`for epoch in …: loader = DataLoader(dataset)`"""
    if not is_loader(scene, call) or not call.args:
        return
    loop = _loop(call, scene)
    if loop is None:
        return
    changing = _bound_in(loop, scene)
    for part in (*call.args, *(keyword.value for keyword in call.keywords)):
        for node in scene.inside(part):
            if isinstance(node, (ast.Attribute, ast.Call, ast.Subscript, ast.Lambda)):
                return  # what an attribute or a call gives may differ from turn to turn
            if isinstance(node, ast.Name) and node.id in changing:
                return
    yield RULE.at(
        call,
        confidence=POSSIBLE if scene.is_test else None,
        line=str(scene.source.place(loop.lineno)[1]),
    )


def _loop(call: ast.Call, scene: Scene) -> ast.For | ast.AsyncFor | ast.While | None:
    child: ast.AST = call
    for up in scene.ancestors(call):
        if isinstance(up, (*SCOPES, ast.If, ast.IfExp)):
            return None
        if isinstance(up, LOOPS) and child in up.body:
            return up
        child = up
    return None


def _bound_in(loop: ast.AST, scene: Scene) -> set[str]:
    return {
        node.id
        for node in scene.inside(loop)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
