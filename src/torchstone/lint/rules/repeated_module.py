"""Multiplying a list of one layer gives one layer many times, not many layers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import settled
from torchstone.lint.knowledge.layers import DROPOUTS, holds_weights, nn_class
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

_CONTAINERS = frozenset(("torch.nn.ModuleList", "torch.nn.Sequential"))

RULE = Rule(
    "TS226",
    "repeated-module",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(en="`{text}` repeats one and the same layer", zh="`{text}` 重复的是同一个层"),
    why=Text(
        en="the list holds the same object each time: all places share one set of weights, and the "
        "model has a fraction of the parameters it seems to have",
        zh="列表里每个元素都是同一个对象：所有位置共用一组权重，模型的实际参数量远少于看上去的数量",
    ),
    suggest=Text(
        en="make a new layer for each place: `[{layer} for _ in range({count})]`",
        zh="为每个位置新建一层：`[{layer} for _ in range({count})]`",
    ),
    title=Text(
        en="A list with one layer is multiplied, so all places share the same weights",
        zh="对只含一个层的列表做乘法，所有位置共用同一组权重",
    ),
    page=Text(
        en="Fires for `[Layer(...)] * n` where `Layer` has weights: a torch.nn class, or an "
        "nn.Module class of the project that makes some.\n\n"
        "- A name bound to such a layer counts, at MEDIUM, when it is used nowhere else and the "
        "list goes into a ModuleList or Sequential.\n"
        "- Where weights are shared on purpose (ALBERT, recursive heads), call one layer several "
        "times, or keep the list a plain one: that is quiet.\n"
        "- Layers without state (`[nn.ReLU()] * n`) are quiet.",
        zh="对 `[Layer(...)] * n` 报告，其中 `Layer` 带有权重：torch.nn 的类，或项目中会创建权重的 nn.Module 类。\n\n"
        "- 先赋给变量的层，若该变量别无他用、且列表交给 ModuleList 或 Sequential，则按 MEDIUM 报告。\n"
        "- 若有意共享权重（ALBERT、递归头），请多次调用同一层，或只用普通列表：这样不会报告。\n"
        "- 无状态的层（`[nn.ReLU()] * n`）不报告。",
    ),
    bad="""\
from torch import nn

def blocks(width, depth):
    return nn.Sequential(*([nn.Linear(width, width)] * depth))
""",
    fixed="""\
@@ -4 +4 @@
-    return nn.Sequential(*([nn.Linear(width, width)] * depth))
+    return nn.Sequential(*([nn.Linear(width, width) for _ in range(depth)]))
""",
    words=("nn",),
)


@RULE.on(ast.BinOp)
def check(node: ast.BinOp, scene: Scene) -> Iterator[Hit]:
    if not isinstance(node.op, ast.Mult):
        return
    row, count = node.left, node.right
    if not isinstance(row, (ast.List, ast.Tuple)):
        row, count = count, row
    if not isinstance(row, (ast.List, ast.Tuple)) or len(row.elts) != 1:
        return
    named = row.elts[0]
    layer = _layer(scene, node, named) if isinstance(named, ast.Name) else named
    if not isinstance(layer, ast.Call) or not holds_weights(scene, layer):
        return
    if isinstance(count, ast.Constant) and count.value == 1:
        return
    text, times = scene.text(layer), scene.text(count)
    fix: Fix | None = None
    if isinstance(row, ast.List):
        fix = unsafe(scene.replace(node, f"[{text} for _ in range({times})]"))
    yield RULE.at(
        node,
        severity=MEDIUM if layer is not named else None,
        text=scene.brief(node),
        layer=scene.brief(layer),
        count=scene.brief(count),
        fix=fix if layer is named else None,
    )


def _layer(scene: Scene, node: ast.BinOp, name: ast.Name) -> ast.expr | None:
    """What a name was made from, when it lives for this list of submodules only."""
    up = scene.parent(node)
    while isinstance(up, ast.Starred):
        up = scene.parent(up)
    if not isinstance(up, ast.Call) or scene.qualified(up.func) not in _CONTAINERS:
        return None
    if any(word in name.id.lower() for word in ("shared", "tied", "same")):
        return None
    uses = [item for item in scene.all(ast.Name) if item.id == name.id]
    reads = [item for item in uses if scene.within(item, scene.scope(name))]
    once = sum(isinstance(item.ctx, ast.Load) for item in reads) == 1
    made = settled(scene, name) if once and len(reads) == 2 else None
    if isinstance(made, ast.Call) and nn_class(scene, made.func) in DROPOUTS:
        return None  # nothing of it is shared
    return made
