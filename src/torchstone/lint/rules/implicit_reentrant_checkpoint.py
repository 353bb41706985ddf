"""Checkpointing without use_reentrant takes the old variant, with its limits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import MEDIUM, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

_CALLS = frozenset(
    ("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")
)

RULE = Rule(
    "TS315",
    "implicit-reentrant-checkpoint",
    severity=MEDIUM,
    aliases=("TOR003",),
    torch_from=(1, 11),
    say=Text(
        en="activation checkpointing without `use_reentrant` takes the old, reentrant variant",
        zh="激活检查点未指定 `use_reentrant`，将采用旧的可重入实现",
    ),
    why=Text(
        en="the reentrant variant gives no gradients when no input requires them, recomputes all "
        "of the block even where half would do, and fails with `torch.autograd.grad`; torch warns "
        "and announces that the default will go",
        zh="可重入实现在输入都不需要梯度时得不到梯度，即使只需一部分也会重算整个块，且与 "
        "`torch.autograd.grad` 不兼容；torch 已发出警告并预告取消该默认值",
    ),
    suggest=Text(
        en="pass `use_reentrant=False`; pass `True` only where the old behaviour is needed",
        zh="传入 `use_reentrant=False`；只有确实需要旧行为时才传 `True`",
    ),
    title=Text(
        en="Activation checkpointing without `use_reentrant` takes the old, reentrant variant",
        zh="激活检查点未指定 `use_reentrant`，将采用旧的可重入实现",
    ),
    page=Text(
        en="Fires on `torch.utils.checkpoint.checkpoint` and `checkpoint_sequential` without the "
        "argument. Quiet when it may be among `**kwargs`.\n\n"
        "The fix passes `use_reentrant=False`. It is unsafe: the two variants differ where the "
        "block has side effects or runs its own backward, and hooks fire at different times. Run "
        "one step with both and compare the gradients.\n\n"
        "The argument exists since torch 1.11; torch warns about its absence since 2.1, and 2.13 "
        "still takes the reentrant variant.",
        zh="检查未带该参数的 `torch.utils.checkpoint.checkpoint` 与 `checkpoint_sequential`；参数可能位于 "
        "`**kwargs` 中时不报告。\n\n"
        "修复会传入 `use_reentrant=False`，属于不安全修复：若块内有副作用或自行执行反向，两种实现有差异，"
        "钩子触发的时机也不同。请各跑一步并比较梯度。\n\n"
        "该参数自 torch 1.11 起存在；自 2.1 起缺少它会收到警告；2.13 仍默认采用可重入实现。",
    ),
    bad="""\
from torch.utils.checkpoint import checkpoint

def run(block, x):
    return checkpoint(block, x)
""",
    fixed="""\
@@ -4 +4 @@
-    return checkpoint(block, x)
+    return checkpoint(block, x, use_reentrant=False)
""",
)


@RULE.on_call("checkpoint", "checkpoint_sequential")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`checkpoint(block, x)`"""
    if scene.qualified(call.func) not in _CALLS or not call.args:
        return
    if any(keyword.arg in ("use_reentrant", None) for keyword in call.keywords):
        return
    yield RULE.at(call, fix=unsafe(scene.add_keyword(call, "use_reentrant=False")))
