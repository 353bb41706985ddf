"""A call or tuple that gives another number of values than are unpacked ends with a ValueError."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.members import has_subclass, outline_of
from torchstone.lint.facts.signatures import is_ambiguous
from torchstone.lint.knowledge.api_use import guarded
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Function, Scene
from torchstone.sources.targets import Target, class_of_value, method_of, target_of
from torchstone.sources.tree import below

RULE = Rule(
    "TS256",
    "unpacked-count-differs",
    torch_from=(0, 1),
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="{wanted} names take what `{text}` gives: {given} values",
        zh="{wanted} 个名字接收 `{text}` 给出的 {given} 个值",
    ),
    why=Text(
        en="the line ends with a ValueError as soon as it runs",
        zh="执行到这一行时会以 ValueError 结束",
    ),
    suggest=Text(en="unpack as many names as there are values", zh="解包的名字数应与值的个数一致"),
    title=Text(
        en="Another number of values is unpacked than a function returns",
        zh="解包的名字个数与函数返回值的个数不同",
    ),
    page=Text(
        en="Compared are tuples that are written out, and functions, methods and modules of the project whose every `return` gives a tuple of one and the same length.",
        zh="比较直接写出的元组，以及项目中每个 `return` 都返回同样长度元组的函数、方法和模块。",
    ),
    words=("torch", "model"),
    bad="""\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x), x, x

def run(x):
    net = Net()
    out, loss = net(x)
    return out, loss
""",
    good="""\
@@ -13 +13 @@
-    out, loss = net(x)
+    out, _, loss = net(x)
""",
)


@RULE.on(ast.Assign)
def check(statement: ast.Assign, scene: Scene) -> Iterator[Hit]:
    """`out, loss = net(x)`"""
    target = statement.targets[0]
    if not isinstance(target, (ast.Tuple, ast.List)) or _is_starred(target):
        return
    given = _count(scene, statement.value)
    if given is not None and given != len(target.elts) and not guarded(scene, statement):
        yield RULE.at(
            statement,
            wanted=str(len(target.elts)),
            given=str(given),
            text=scene.brief(statement.value),
        )


def _is_starred(node: ast.Tuple | ast.List) -> bool:
    return any(isinstance(item, ast.Starred) for item in node.elts)


def _count(scene: Scene, value: ast.expr) -> int | None:
    """How many values an expression gives; None when that is not known."""
    if isinstance(value, (ast.Tuple, ast.List)):
        return None if _is_starred(value) else len(value.elts)
    if not isinstance(value, ast.Call) or is_ambiguous(scene, value.func):
        return None
    found = _function(scene, value)
    return _returned(*found) if found is not None else None


def _function(scene: Scene, call: ast.Call) -> Target | None:
    """The one function that a call can run."""
    target = target_of(scene, call)
    if target is None:
        made = class_of_value(scene, call.func)
        target = method_of(*made, "forward") if made and made[0].is_module_class(made[1]) else None
    if target is None or target[1].decorator_list or isinstance(target[1], ast.AsyncFunctionDef):
        return None
    owner = target[0].class_of(target[1])
    several = outline_of(scene.project).functions[target[1].name.encode()] > 1
    if owner is not None and several and has_subclass(scene.project, owner):
        return None  # a subclass may give something else
    return target


def _returned(scene: Scene, function: Function) -> int | None:
    """The length of the tuples that every `return` of a function gives."""
    counts: set[int | None] = set()
    for node in below(function):
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return None
        if isinstance(node, ast.Return):
            value = node.value
            whole = isinstance(value, ast.Tuple) and not _is_starred(value)
            counts.add(len(value.elts) if isinstance(value, ast.Tuple) and whole else None)
    return counts.pop() if len(counts) == 1 else None
