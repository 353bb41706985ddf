"""Gradients cleared on every micro-step leave nothing to accumulate."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule, unsafe
from torchstone.sources.scene import LOOPS, Scene
from torchstone.sources.training import backward_calls, step_calls

RULE = Rule(
    "TS228",
    "cleared-on-every-micro-step",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{clear}` runs on every micro-step, but `{step}` only under `{test}`",
        zh="`{clear}` 每个微批次都会执行，而 `{step}` 只在 `{test}` 时执行",
    ),
    why=Text(
        en="the gradients of all micro-steps but the last are thrown away before the step that "
        "should have used them: the batch is smaller than it seems",
        zh="除最后一个微批次外，其余梯度都在优化器更新之前被清空：实际批大小比看上去的小",
    ),
    suggest=Text(
        en="move `{clear}` into the same branch, after `{step}`",
        zh="把 `{clear}` 移到同一分支中，放在 `{step}` 之后",
    ),
    title=Text(
        en="Gradients are cleared on every micro-step of an accumulation loop, so nothing accumulates",
        zh="梯度累积循环中每个微批次都清空梯度，结果什么也没有累积",
    ),
    page=Text(
        en="Fires when the body of one loop clears an optimizer's gradients and runs `backward()` on "
        "every turn, while the same optimizer steps only under an `if` whose test counts (`%`).\n\n"
        "- Quiet when the clearing stands under the same test, or when `backward()` does.\n"
        "- Quiet for another optimizer's step.\n\n"
        "The fix is unsafe: it moves the line, and whoever meant the smaller batch loses it.",
        zh="当同一循环体每次都清空某优化器的梯度并执行 `backward()`，而该优化器只在带计数（`%`）的 `if` "
        "下更新时报告。\n\n"
        "- 清空梯度或 `backward()` 位于同一条件下时，不报告。\n"
        "- 更新的是另一个优化器时，不报告。\n\n"
        "该修复不安全：它会移动这一行；若本来就想用较小的批，行为会改变。",
    ),
    bad="""\
import torch

def train(model, loader, optimizer, accum):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = model(x, y) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            optimizer.step()
""",
    fixed="""\
@@ -5 +4,0 @@
-        optimizer.zero_grad()
@@ -9,0 +9 @@
+            optimizer.zero_grad()
""",
    needs=("backward", "step"),
)


@RULE.on_call("zero_grad")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    statement, name = scene.parent(call), scene.dotted(scene.receiver(call))
    loop = scene.parent(statement) if isinstance(statement, ast.Expr) else None
    if not name or not isinstance(loop, LOOPS) or not scene.is_optimizer(scene.receiver(call)):
        return
    if not any(
        _own(scene, backward, loop) for backward in backward_calls(scene).inside(scene, loop)
    ):
        return
    steps = [item for item in step_calls(scene) if name in _names(scene, item)]
    inside = [item for item in steps if scene.within(item, loop)]
    gates = [_gate(scene, item, loop) for item in inside]
    if not gates or any(gate is None for gate in gates):
        return
    gate, step = gates[0], inside[0]
    if gate is None or backward_calls(scene).inside(scene, gate):
        return
    yield RULE.at(
        call,
        clear=scene.brief(call),
        step=scene.brief(step),
        test=scene.brief(gate.test),
        fix=_fix(scene, statement, step),
    )


def _names(scene: Scene, step: ast.Call) -> set[str]:
    return {scene.dotted(scene.receiver(step)), *map(scene.dotted, step.args[:1])}


def _own(scene: Scene, backward: ast.Call, loop: ast.AST) -> bool:
    """Whether a backward runs on every turn of the loop itself."""
    statement = scene.statement(backward)
    up = scene.parent(statement) if statement is not None else None
    while isinstance(up, (ast.With, ast.AsyncWith)):
        up = scene.parent(up)
    return up is loop


def _gate(scene: Scene, step: ast.Call, loop: ast.AST) -> ast.If | None:
    """The counting `if` between the loop and the step."""
    for up in scene.ancestors(step):
        if up is loop:
            return None
        if isinstance(up, ast.If) and any(
            isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod)
            for part in scene.inside(up.test)
        ):
            return up
    return None


def _fix(scene: Scene, statement: ast.AST | None, step: ast.Call) -> Fix | None:
    target = scene.statement(step)
    if not isinstance(statement, ast.stmt) or not isinstance(target, ast.Expr):
        return None
    remove = scene.delete_line(statement)
    if remove is None:
        return None
    return unsafe(remove, scene.insert_line_after(target, scene.text(statement)))
