"""`import torchvision.models as models` says the same name twice."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import LOW, Hit, Rule, safe
from torchstone.sources.scene import Scene

_PARTS = frozenset(("datasets", "models", "transforms"))

RULE = Rule(
    "TS515",
    "torchvision-singleton-import",
    severity=LOW,
    default=False,
    aliases=("TOR203",),
    title=Text(
        en="A part of torchvision is imported under its own name by `import … as`",
        zh="用 `import … as` 以原名导入 torchvision 的子模块",
    ),
    say=Text(
        en="`import torchvision.{part} as {part}` says the same name twice",
        zh="`import torchvision.{part} as {part}` 重复书写了同一个名字",
    ),
    why=Text(
        en="the form hides which names of torchvision a file uses; tools that move code to new "
        "torchvision names look for `from torchvision import …`",
        zh="这种写法不易看出文件用到 torchvision 的哪些部分；迁移工具也按 `from torchvision import …` 查找",
    ),
    suggest=Text(
        en="write `from torchvision import {part}`", zh="改为 `from torchvision import {part}`"
    ),
    page=Text(
        en="Fires on `import torchvision.models as models`, and the same for `datasets` and "
        "`transforms`. A matter of style, with a safe fix where the statement imports nothing "
        "else. Since nothing breaks, it is off unless selected by code or name; TorchFix has its "
        "TOR203 on by default.",
        zh="检查 `import torchvision.models as models`，以及 `datasets`、`transforms` 的同类写法。属于风格问题；"
        "语句未导入其他内容时可安全修复。由于不影响运行，默认关闭，按编号或名称选择后才检查；"
        "TorchFix 的 TOR203 则默认开启。",
    ),
    words=("torchvision",),
    bad="""\
import torchvision.models as models
""",
    fixed="""\
@@ -1 +1 @@
-import torchvision.models as models
+from torchvision import models
""",
)


@RULE.on(ast.Import)
def check(node: ast.Import, scene: Scene) -> Iterator[Hit]:
    """`import torchvision.models as models`"""
    for alias in node.names:
        home, _, part = alias.name.partition(".")
        if home == "torchvision" and part in _PARTS and alias.asname == part:
            alone = len(node.names) == 1
            edit = scene.replace(node, f"from torchvision import {part}")
            yield RULE.at(node, fix=safe(edit) if alone else None, part=part)
