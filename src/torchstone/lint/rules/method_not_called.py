"""A method that is named but not called does nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, Hit, Rule, safe
from torchstone.sources.scene import Scene

_METHODS = (
    "step", "backward", "zero_grad", "eval", "train", "barrier", "synchronize", "empty_cache",
    "unscale_", "wait_for_everyone", "share_memory", "requires_grad_", "destroy_process_group",
)  # fmt: skip

RULE = Rule(
    "TS217",
    "method-not-called",
    severity=HIGH,
    say=Text(en="`{text}` is named but not called", zh="`{text}` 只写了名字，没有调用"),
    why=Text(
        en="without parentheses the line only looks the method up: {effect}",
        zh="没有括号，这一行只是取出了方法对象：{effect}",
    ),
    suggest=Text(en="write `{text}()`", zh="写成 `{text}()`"),
    title=Text(
        en="A method such as optimizer.step or model.eval is named without parentheses and never "
        "runs",
        zh="optimizer.step、model.eval 等方法漏写括号，从未执行",
    ),
    page=Text(
        en="Fires for a statement that is nothing but `value.step`, `.backward`, `.zero_grad`, "
        "`.eval`, `.train`, `.barrier`, `.synchronize`, `.empty_cache` and the like. Python runs "
        "it without complaint and does nothing.\n\n"
        "- The last line of a notebook cell, which shows the value, is quiet.",
        zh="当一条语句只有 `value.step`、`.backward`、`.zero_grad`、`.eval`、`.train`、`.barrier`、"
        "`.synchronize`、`.empty_cache` 等时报告。Python 不会报错，但什么也不做。\n\n"
        "- 笔记本单元格的最后一行用于显示值，不报告。",
    ),
    bad="""\
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step
""",
    fixed="""\
@@ -7 +7 @@
-        optimizer.step
+        optimizer.step()
""",
    words=_METHODS,
)
_EFFECTS = {
    "step": Text("no parameter is updated", "参数不会更新"),
    "backward": Text("no gradient is computed", "不会计算梯度"),
    "zero_grad": Text("gradients keep adding up", "梯度会一直累加"),
    "eval": Text(
        "dropout and batch norm stay in training mode", "dropout 和 batch norm 仍处于训练模式"
    ),
    "train": Text("the model stays in evaluation mode", "模型仍处于评估模式"),
    "barrier": Text("no rank waits for another", "各个 rank 不会互相等待"),
}
_NOTHING = Text("nothing happens", "什么也不会发生")


@RULE.on(ast.Expr)
def check(statement: ast.Expr, scene: Scene) -> Iterator[Hit]:
    value = statement.value
    if not isinstance(value, ast.Attribute) or value.attr not in _METHODS:
        return
    if scene.source.cell_starts:
        return
    effect = _EFFECTS.get(value.attr, _NOTHING)
    why = Text(
        RULE.why.en.replace("{effect}", effect.en), RULE.why.zh.replace("{effect}", effect.zh)
    )
    yield RULE.at(value, text=scene.text(value), why=why, fix=safe(scene.insert_after(value, "()")))
