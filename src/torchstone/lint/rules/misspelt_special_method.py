"""A misspelt `__init__` or `forward` is never called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS245",
    "misspelt-special-method",
    torch_from=(0, 1),
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{name}` is never called: `{meant}` is",
        zh="`{name}` 不会被调用，会被调用的是 `{meant}`",
    ),
    why=Text(
        en="Python and torch look for `{meant}` and use the inherited one",
        zh="Python 和 torch 查找的是 `{meant}`，因此会使用继承来的方法",
    ),
    suggest=Text(en="rename it to `{meant}`", zh="改名为 `{meant}`"),
    title=Text(
        en="A special method of a module or dataset is misspelt",
        zh="模块或数据集的特殊方法名拼写有误",
    ),
    page=Text(
        en="Reported in classes that derive from `nn.Module` or a `Dataset`, for methods that nothing in the project calls by their name.",
        zh="检查继承自 `nn.Module` 或 `Dataset` 的类中、项目里没有按名字调用过的方法。",
    ),
    words=("torch",),
    bad="""\
import torch

class Net(torch.nn.Module):
    def ___init___(self, size):
        super().__init__()
        self.layer = torch.nn.Linear(size, size)
""",
    good="""\
@@ -4 +4 @@
-    def ___init___(self, size):
+    def __init__(self, size):
""",
)
_SPECIALS = {"init": "__init__", "getitem": "__getitem__", "len": "__len__", "call": "__call__"}
_FORWARD = frozenset("foward forwad forwrd froward forword farward fowrard forwards".split())
_BASES = (
    "torch.nn.Module",
    "torch.utils.data.Dataset",
    "torch.utils.data.dataset.Dataset",
    "torch.utils.data.IterableDataset",
)
_UNDERSCORES = 3  # `_init` is a name of its own; three or more show that a special one was meant


@RULE.on(ast.ClassDef)
def check(owner: ast.ClassDef, scene: Scene) -> Iterator[Hit]:
    """`def ___init___(self):`"""
    for item in owner.body:
        if not isinstance(item, ast.FunctionDef):
            continue
        meant = _meant(item)
        if meant and item.name not in scene.calls and scene.derives(owner, _BASES):
            yield RULE.at(item, name=item.name, meant=meant)


def _meant(item: ast.FunctionDef) -> str:
    core = item.name.replace("_", "")
    if item.name in _FORWARD:
        return "forward"
    special = _SPECIALS.get("init" if core in ("int", "intit", "inti", "nit") else core, "")
    if not special or item.name == special or item.name.count("_") < _UNDERSCORES:
        return ""
    converts = item.name == "__int__" and len(item.args.args) == 1
    return "" if converts else special
