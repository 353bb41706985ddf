"""An import of what torch wants to drop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.api_use import guarded, import_fix
from torchstone.lint.knowledge.torch_api import DEPRECATED, shown
from torchstone.lint.rule import LOW, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS504",
    "deprecated-function-import",
    severity=LOW,
    aliases=("TOR103",),
    title=Text(en="A name is imported that torch has deprecated", zh="导入了 torch 已弃用的名字"),
    say=Text(
        en="`{name}` is deprecated since torch {since}", zh="`{name}` 自 torch {since} 起弃用"
    ),
    why=Text(
        en="deprecated names get no fixes, warn at run time and go away with a later release, "
        "which then breaks the import of this module",
        zh="已弃用的名字不再维护，运行时会发出警告；后续版本移除后，本模块将无法导入",
    ),
    suggest=Text(en="import `{instead}`", zh="改为导入 `{instead}`"),
    page=Text(
        en="The same names as deprecated-function, where they are imported by "
        "`from module import name`.\n\n"
        "The fix exists where the successor takes the same arguments: it changes the import and, "
        "when the name changes, every use of it in the file. Quiet when the project's oldest "
        "torch does not have the successor yet, in `try`, and under a condition that asks for the "
        "version.",
        zh="与 deprecated-function 相同的名字，检查以 `from 模块 import 名字` 引入之处。\n\n"
        "后继参数相同时可以修复：修改导入语句；若名字有变，同时修改文件内的全部使用处。若项目支持的最低 "
        "torch 尚无后继、位于 `try` 中或版本判断之下，则不报告。",
    ),
    words=tuple(sorted({name.rpartition(".")[2] for name in DEPRECATED})),
    bad="""\
import torch
from functorch import vmap

f = vmap(g)
""",
    fixed="""\
@@ -2 +2 @@
-from functorch import vmap
+from torch.func import vmap
""",
)


@RULE.on(ast.ImportFrom)
def check(node: ast.ImportFrom, scene: Scene) -> Iterator[Hit]:
    """`from functorch import vmap`"""
    if node.level or not node.module or not node.module.startswith(("torch", "functorch")):
        return
    for alias in node.names:
        symbol = DEPRECATED.get(f"{node.module}.{alias.name}")
        if symbol is None:
            continue
        oldest = scene.project.torch
        early = oldest is not None and oldest < max(symbol.since, symbol.available)
        if early and not scene.project.torch_open:
            continue
        if guarded(scene, node):
            return
        yield RULE.at(
            alias,
            suggest=symbol.advice,
            fix=None if early else import_fix(scene, node, alias, symbol),
            name=symbol.name,
            since=shown(symbol.since),
            instead=symbol.instead,
        )
