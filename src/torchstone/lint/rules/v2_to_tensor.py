"""`v2.ToTensor` is deprecated from its start."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.rule import LOW, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

_NAME = "torchvision.transforms.v2.ToTensor"

RULE = Rule(
    "TS514",
    "v2-to-tensor",
    severity=LOW,
    aliases=("TOR202",),
    torch_from=(2, 0),
    say=Text(en="`v2.ToTensor` is deprecated", zh="`v2.ToTensor` 已弃用"),
    why=Text(
        en="it converts and scales in one step, only PIL images and arrays, and leaves the other "
        "parts of a sample (boxes, masks) behind; torchvision announced its end",
        zh="它把转换与缩放合在一步，只处理 PIL 图像与数组，会遗漏样本中的框、掩码等部分；torchvision 已宣布将其"
        "移除",
    ),
    suggest=Text(
        en="use `v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])`",
        zh="改用 `v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])`",
    ),
    title=Text(en="The deprecated `v2.ToTensor` is used", zh="使用了已弃用的 `v2.ToTensor`"),
    page=Text(
        en="Fires on `torchvision.transforms.v2.ToTensor`, where it is used or imported. The old "
        "`torchvision.transforms.ToTensor` is not meant.\n\n"
        "The fix replaces `v2.ToTensor()` when the file knows `torch` and `v2` by a name. It is "
        "unsafe: the result is a `tv_tensors.Image` instead of a plain tensor.",
        zh="检查 `torchvision.transforms.v2.ToTensor` 的使用与导入；旧的 `torchvision.transforms.ToTensor` 不在"
        "此列。\n\n"
        "当文件中已有 `torch` 与 `v2` 的名字时可以修复 `v2.ToTensor()`。结果是 `tv_tensors.Image` 而非普通"
        "张量，因此标记为不安全。",
    ),
    words=("ToTensor",),
    bad="""\
import torch
from torchvision.transforms import v2

t = v2.ToTensor()
""",
    fixed="""\
@@ -4 +4 @@
-t = v2.ToTensor()
+t = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
""",
)


@RULE.on(ast.Attribute)
def check_use(node: ast.Attribute, scene: Scene) -> Iterator[Hit]:
    """`v2.ToTensor()`"""
    if node.attr == "ToTensor" and scene.qualified(node) == _NAME:
        yield RULE.at(node, fix=_fix(node, scene))


@RULE.on(ast.ImportFrom)
def check_import(node: ast.ImportFrom, scene: Scene) -> Iterator[Hit]:
    """`from torchvision.transforms.v2 import ToTensor`"""
    if node.module == "torchvision.transforms.v2" and not node.level:
        for alias in node.names:
            if alias.name == "ToTensor":
                yield RULE.at(alias)


def _fix(node: ast.Attribute, scene: Scene) -> Fix | None:
    call = scene.parent(node)
    if not isinstance(call, ast.Call) or call.func is not node or call.args or call.keywords:
        return None
    torch = next((name for name, full in scene.imports.aliases.items() if full == "torch"), "")
    if not torch:
        return None
    v2 = scene.text(node.value)
    new = f"{v2}.Compose([{v2}.ToImage(), {v2}.ToDtype({torch}.float32, scale=True)])"
    return unsafe(scene.replace(call, new))
