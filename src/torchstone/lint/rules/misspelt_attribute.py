"""A misspelt attribute ends the program with an AttributeError."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.spelling import meant_by
from torchstone.lint.knowledge.api_use import guarded
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS259",
    "misspelt-attribute",
    torch_from=(0, 1),
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="nothing defines `{name}`; `{near}` is one letter away",
        zh="没有任何地方定义 `{name}`；`{near}` 只差一个字母",
    ),
    why=Text(
        en="the program ends with an AttributeError as soon as this line runs",
        zh="执行到这一行时，程序会以 AttributeError 结束",
    ),
    suggest=Text(en="write `{near}`", zh="改为 `{near}`"),
    title=Text(
        en="An attribute that nothing defines is one letter away from one that is",
        zh="读取的属性没有任何地方定义，与已有的属性只差一个字母",
    ),
    page=Text(
        en="""\
Reported where no file of the project defines, sets, quotes or offers as an option what is read, neither torch's tensors
and modules nor Python's own types have it, and exactly one of their names differs by one letter inside, or by two
that are exchanged. The word that differs must stand nowhere else in the project: otherwise it belongs to another library.

Endings, numbers and other spellings (`losses`, `conv2`, `normalise`) count as other names, and attributes of imported
modules are not looked at.""",
        zh="""\
当项目中没有任何文件定义、设置、以字符串提到或作为命令行选项提供所读取的属性，torch 的张量和模块以及 Python 内置类型也没有它，而恰好有一个
名字在内部只差一个字母或两个字母互换时报告。不同的那个词不得出现在项目的其他地方，否则它属于其他库。

词尾、数字和不同拼法（`losses`、`conv2`、`normalise`）视为不同的名字；不检查导入模块的属性。""",
    ),
    words=("torch", "__getitem__", "model"),
    bad="""\
import torch

class TrainConfig:
    def __init__(self, config):
        self.linear_timesteps = config.get("linear_timesteps", False)

def weigh(config, loss):
    if config.linear_timestqeps:
        loss = loss * torch.linspace(1, 0, 10)
    return loss
""",
    fixed="""\
@@ -8 +8 @@
-    if config.linear_timestqeps:
+    if config.linear_timesteps:
""",
)
_MOST = 2
"""How often a file may read what is a slip: what it reads again and again is of another library."""


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    """`config.linear_timestqeps`"""
    reads: dict[str, list[ast.Attribute]] = {}
    for node in scene.all(ast.Attribute):
        if node.ctx.__class__ is ast.Load:
            reads.setdefault(node.attr, []).append(node)
    for name, nodes in reads.items():
        few = len(nodes) <= _MOST
        near = meant_by(scene.project, name, len(nodes)) if few else ""
        node = nodes[0]
        if near and not scene.qualified(node) and not guarded(scene, node):
            _, _, line, end = scene.span(node)
            fix = safe(scene.edit(line, end - len(name), line, end, near))
            yield RULE.at(node, name=name, near=near, fix=fix)
