"""A private name of torch where a public one exists."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.api_use import guarded, written
from torchstone.lint.knowledge.torch_api import PRIVATE, shown
from torchstone.lint.rule import LOW, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS506",
    "private-function",
    severity=LOW,
    aliases=("TOR104",),
    title=Text(
        en="A private name of torch is used where a public one exists",
        zh="使用了 torch 的私有名字，而公开名字已存在",
    ),
    say=Text(
        en="`{name}` is private; `{instead}` is public since torch {since}",
        zh="`{name}` 是私有名字；自 torch {since} 起有公开的 `{instead}`",
    ),
    why=Text(
        en="names with an underscore move or vanish without notice or deprecation",
        zh="带下划线的名字可能在没有通知和弃用期的情况下移动或消失",
    ),
    suggest=Text(en="use `{instead}`", zh="改用 `{instead}`"),
    page=Text(
        en="Fires on names for which torch has a public equal: `default_collate` and "
        "`default_convert`, `_LRScheduler`, `torch.distributed._tensor`, "
        "`torch.distributed._composable.fsdp`, `torch._dynamo.disable` and its like, "
        "`_all_gather_base`, `_reduce_scatter_base`. Other private names are left alone: there "
        "may be no other way.\n\n"
        "Quiet when the project's oldest torch does not have the public name yet, in `try`, and "
        "under a condition that asks for the version. The fix is safe: both names stand for the "
        "same thing.",
        zh="检查已有公开等价物的名字：`default_collate` 与 `default_convert`、`_LRScheduler`、"
        "`torch.distributed._tensor`、`torch.distributed._composable.fsdp`、`torch._dynamo.disable` 等、"
        "`_all_gather_base`、`_reduce_scatter_base`。其他私有名字不报告，因为可能别无选择。\n\n"
        "若项目支持的最低 torch 尚无公开名字、位于 `try` 中或版本判断之下，则不报告。两个名字指同一事物，"
        "因此修复是安全的。",
    ),
    words=tuple(sorted({name.rpartition(".")[2] for name in PRIVATE})),
    bad="""\
import torch

def collate(items):
    return torch.utils.data._utils.collate.default_collate(items)
""",
    fixed="""\
@@ -4 +4 @@
-    return torch.utils.data._utils.collate.default_collate(items)
+    return torch.utils.data.default_collate(items)
""",
)
_LAST = frozenset(RULE.words)


@RULE.on(ast.Attribute)
def check(node: ast.Attribute, scene: Scene) -> Iterator[Hit]:
    """`torch.utils.data._utils.collate.default_collate`"""
    if node.attr not in _LAST:
        return
    symbol = PRIVATE.get(scene.qualified(node))
    if symbol is None:
        return
    oldest = scene.project.torch
    if (oldest is not None and oldest < symbol.available) or guarded(scene, node):
        return
    new = written(scene, node, symbol.instead)
    yield RULE.at(
        node,
        fix=safe(scene.replace(node, new)) if new else None,
        name=symbol.name,
        since=shown(symbol.available),
        instead=symbol.instead,
    )
