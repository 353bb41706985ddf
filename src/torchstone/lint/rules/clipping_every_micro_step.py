"""Under accelerate's accumulation, gradients are whole only when they are synchronised."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS233",
    "clipping-every-micro-step",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{call}` clips after every micro-batch, not once per optimizer step",
        zh="`{call}` 在每个微批次之后都裁剪，而不是每个优化器 step 一次",
    ),
    why=Text(
        en="inside `accumulate` the gradients of earlier micro-batches are clipped again with each "
        "new one: the sum that is applied is not the clipped sum",
        zh="在 `accumulate` 中，较早微批次的梯度会随着每个新批次被再次裁剪：最终使用的并不是裁剪后的总和",
    ),
    suggest=Text(
        en="put it under `if accelerator.sync_gradients:`",
        zh="放到 `if accelerator.sync_gradients:` 之下",
    ),
    title=Text(
        en="Gradients are clipped on every micro-step of accelerate's accumulation",
        zh="在 accelerate 累积的每个微步都裁剪梯度",
    ),
    page=Text(
        en="Fires for `accelerator.clip_grad_norm_` and `clip_grad_value_` inside `with "
        "accelerator.accumulate(...)` without a test of `sync_gradients`.",
        zh="在 `with accelerator.accumulate(...)` 中调用 `accelerator.clip_grad_norm_` 或 `clip_grad_value_` 而没有"
        "判断 `sync_gradients` 时报告。",
    ),
    bad="""\
import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=4)

def train(model, loader, opt):
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch))
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
""",
    fixed="""\
@@ -10 +10,2 @@
-            accelerator.clip_grad_norm_(model.parameters(), 1.0)
+            if accelerator.sync_gradients:
+                accelerator.clip_grad_norm_(model.parameters(), 1.0)
""",
    needs=("accumulate",),
)


@RULE.on_call("clip_grad_norm_", "clip_grad_value_")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    owner = scene.dotted(scene.receiver(call))
    source = scene.origin(scene.receiver(call))
    made = isinstance(source, ast.Call) and scene.last_name(source.func) == "Accelerator"
    if not made and owner.rpartition(".")[2] != "accelerator":
        return
    for up in scene.ancestors(call):
        if isinstance(up, ast.If) and "sync" in scene.text(up.test):
            return
        if isinstance(up, ast.With) and _accumulates(scene, up, owner):
            yield RULE.at(call, call=scene.brief(call), fix=_fix(scene, call, owner))
            return


def _accumulates(scene: Scene, block: ast.With, owner: str) -> bool:
    return any(
        isinstance(item.context_expr, ast.Call)
        and scene.dotted(item.context_expr.func) == f"{owner}.accumulate"
        for item in block.items
    )


def _fix(scene: Scene, call: ast.Call, owner: str) -> Fix | None:
    statement = scene.statement(call)
    if not isinstance(statement, ast.Expr) or statement.lineno != statement.end_lineno:
        return None
    indent = " " * statement.col_offset
    text = f"if {owner}.sync_gradients:\n{indent}    {scene.text(statement)}"
    return safe(scene.replace(statement, text))
