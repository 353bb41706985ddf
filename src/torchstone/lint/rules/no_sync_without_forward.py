"""no_sync must hold the forward pass too, or it does nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import settled
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene
from torchstone.sources.training import backward_calls

RULE = Rule(
    "TS417",
    "no-sync-without-forward",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{context}` holds backward() but not the forward pass",
        zh="`{context}` 里只有 backward()，没有前向计算",
    ),
    why=Text(
        en="DDP decides in its forward whether the next backward is averaged: with the forward "
        "outside, every micro-step still exchanges all gradients",
        zh="DDP 在前向时决定下一次 backward 是否做平均：前向在外面时，每个微步仍会交换全部梯度",
    ),
    suggest=Text(
        en="put the forward pass under `{context}` as well", zh="把前向计算也放到 `{context}` 之下"
    ),
    title=Text(
        en="no_sync() has no effect unless the forward pass is inside it too",
        zh="no_sync() 只有同时包住前向计算才有效，否则梯度仍会同步",
    ),
    page=Text(
        en="Fires when a `with model.no_sync():` block goes backward over a plain name and calls "
        "nothing that could be the forward pass. The documentation of DDP asks for the forward "
        "inside; measured on torch 2.13: with the backward alone inside, gradients are exchanged "
        "as if no_sync were not there. `nullcontext() if last else model.no_sync()` is looked "
        "into as well.\n\n"
        "- FSDP2's `set_requires_gradient_sync` has no such rule and is not looked at.",
        zh="`with model.no_sync():` 块内只对某个变量执行 backward，没有任何可能是前向的调用时报告。DDP 文档要求前向也放在里面；"
        "在 torch 2.13 上实测：只把 backward 放进去，梯度照样交换，如同没有 no_sync。"
        "`nullcontext() if last else model.no_sync()` 这样的条件表达式也会检查。\n\n"
        "- FSDP2 的 `set_requires_gradient_sync` 没有这一限制，不检查。",
    ),
    bad="""\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def step(model, batches, optimizer):
    for x, y in batches[:-1]:
        loss = model(x, y)
        with model.no_sync():
            loss.backward()
""",
    good="""\
@@ -6 +5,0 @@
-        loss = model(x, y)
@@ -7,0 +7 @@
+            loss = model(x, y)
""",
    words=("no_sync",),
    needs=("backward",),
)


@RULE.on(ast.With)
def check(node: ast.With, scene: Scene) -> Iterator[Hit]:
    for item in node.items:
        context = _no_sync(scene, item.context_expr)
        if context is None:
            continue
        inside = [
            part
            for statement in node.body
            for part in scene.inside(statement)
            if isinstance(part, ast.Call)
        ]
        backward = [call for call in inside if call in backward_calls(scene)]
        others = [call for call in inside if call not in backward and not _harmless(scene, call)]
        names = [scene.receiver(call) for call in backward]
        if not backward or others or not all(isinstance(name, ast.Name) for name in names):
            return
        if all(_made_outside(scene, name, node) for name in names if isinstance(name, ast.Name)):
            yield RULE.at(item.context_expr, context=scene.brief(context))


def _no_sync(scene: Scene, context: ast.expr) -> ast.Call | None:
    """The call of no_sync that a with-statement enters, also in one arm of a condition."""
    made = settled(scene, context) or context
    for arm in (made.body, made.orelse) if isinstance(made, ast.IfExp) else (made,):
        if isinstance(arm, ast.Call) and scene.last_name(arm.func) == "no_sync":
            return arm
    return None


def _harmless(scene: Scene, call: ast.Call) -> bool:
    return scene.last_name(call.func) in ("item", "detach", "print", "append", "scale", "float")


def _made_outside(scene: Scene, name: ast.Name, node: ast.With) -> bool:
    rows = [row for row in scene.bindings(name) if row.how == "assign"]
    return bool(rows) and not any(scene.within(row.node, node) for row in rows)
