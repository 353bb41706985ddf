"""An import of a private name of torch where a public one exists."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.api_use import guarded, import_fix
from torchstone.lint.knowledge.torch_api import PRIVATE, shown
from torchstone.lint.rule import LOW, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS507",
    "private-function-import",
    severity=LOW,
    aliases=("TOR105",),
    title=Text(
        en="A private name of torch is imported where a public one exists",
        zh="导入了 torch 的私有名字，而公开名字已存在",
    ),
    say=Text(
        en="`{name}` is private; `{instead}` is public since torch {since}",
        zh="`{name}` 是私有名字；自 torch {since} 起有公开的 `{instead}`",
    ),
    why=Text(
        en="names with an underscore move or vanish without notice, and the import of this module "
        "then fails",
        zh="带下划线的名字可能在没有通知的情况下移动或消失，届时本模块将无法导入",
    ),
    suggest=Text(en="import `{instead}`", zh="改为导入 `{instead}`"),
    page=Text(
        en="The same names as private-function, where they are imported by "
        "`from module import name`. The fix changes the import and, when the name changes, every "
        "use of it in the file.\n\n"
        "Quiet when the project's oldest torch does not have the public name yet, in `try`, and "
        "under a condition that asks for the version.",
        zh="与 private-function 相同的名字，检查以 `from 模块 import 名字` 引入之处。修复会修改导入语句；若"
        "名字有变，同时修改文件内的全部使用处。\n\n"
        "若项目支持的最低 torch 尚无公开名字、位于 `try` 中或版本判断之下，则不报告。",
    ),
    words=tuple(sorted({name.rpartition(".")[2] for name in PRIVATE})),
    bad="""\
from torch.utils.data._utils.collate import default_collate

x = default_collate([1])
""",
    fixed="""\
@@ -1 +1 @@
-from torch.utils.data._utils.collate import default_collate
+from torch.utils.data import default_collate
""",
)


@RULE.on(ast.ImportFrom)
def check(node: ast.ImportFrom, scene: Scene) -> Iterator[Hit]:
    """`from torch.optim.lr_scheduler import _LRScheduler`"""
    if node.level or not node.module or not node.module.startswith("torch."):
        return
    for alias in node.names:
        symbol = PRIVATE.get(f"{node.module}.{alias.name}")
        if symbol is None:
            continue
        oldest = scene.project.torch
        if (oldest is not None and oldest < symbol.available) or guarded(scene, node):
            continue
        yield RULE.at(
            alias,
            fix=import_fix(scene, node, alias, symbol),
            name=symbol.name,
            since=shown(symbol.available),
            instead=symbol.instead,
        )
