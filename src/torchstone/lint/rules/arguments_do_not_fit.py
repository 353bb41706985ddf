"""A call whose arguments do not fit the function ends the program with a TypeError."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.signatures import misfit, signature_of
from torchstone.lint.knowledge.api_use import guarded
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS241",
    "arguments-do-not-fit",
    torch_from=(0, 1),
    severity=MEDIUM,
    highest=MEDIUM,
    confidence=LIKELY,
    say=Text(en="`{function}` takes no argument `{name}`", zh="`{function}` 不接受参数 `{name}`"),
    why=Text(
        en="the call ends with a TypeError as soon as it runs",
        zh="执行到该调用时会以 TypeError 结束",
    ),
    suggest=Text(en="give the arguments that the function takes", zh="按函数的签名传入参数"),
    title=Text(
        en="A call gives arguments that its function does not take, or leaves out one that it needs",
        zh="调用给出了函数不接受的参数，或缺少必需的参数",
    ),
    page=Text(
        en="""\
Compared are calls of functions, methods and classes of the project, calls of modules whose class is known (their
`forward`), and calls of torch. What torch takes comes from an index of several releases: an argument that any of them
takes is never reported.

Quiet where arguments are unpacked (`*args`, `**kwargs`), where the function is decorated in an unknown way or
defined more than once, where a subclass may override the method, and under a question of version.""",
        zh="""\
比较对项目中函数、方法、类的调用，对类已知的模块的调用（即其 `forward`），以及对 torch 的调用。torch 接受哪些参数来自对多个版本
的索引：只要其中任一版本接受，就不报告。

不报告：参数是展开的（`*args`、`**kwargs`）；函数带有未知的装饰器或被多次定义；子类可能覆盖该方法；位于版本判断之下。""",
    ),
    words=("torch", "__getitem__", "model"),
    bad="""\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.value, self.gain = nn.Linear(size, 1), nn.Linear(size, 4)
        self.tails = nn.ModuleList(self.value, self.gain)
""",
    good="""\
@@ -8 +8 @@
-        self.tails = nn.ModuleList(self.value, self.gain)
+        self.tails = nn.ModuleList([self.value, self.gain])
""",
)
_SAYS = {
    "twice": Text(
        en="`{function}` is given the argument `{name}` twice, which Python refuses to compile",
        zh="传给 `{function}` 的参数 `{name}` 重复，Python 无法编译",
    ),
    "many": Text(
        en="`{function}` is given more arguments than it takes ({name})",
        zh="传给 `{function}` 的参数过多（{name}）",
    ),
    "missing": Text(
        en="`{function}` needs the argument `{name}`, which is not given",
        zh="`{function}` 需要参数 `{name}`，但没有传入",
    ),
}


@RULE.on(ast.Call)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`nn.ModuleList(a, b)`"""
    names = [item.arg for item in call.keywords if item.arg]
    twice = next((name for name in names if names.count(name) > 1), "") if names else ""
    if twice:
        yield RULE.at(call, say=_SAYS["twice"], function=scene.dotted(call.func), name=twice)
        return
    if scene.has_star(call) or call.func.__class__ not in (ast.Name, ast.Attribute):
        return
    takes = signature_of(scene, call)
    found = misfit(call, takes) if takes is not None else None
    if found is None or takes is None or guarded(scene, call) or _is_test_of_errors(scene, call):
        return
    yield RULE.at(call, say=_SAYS.get(found.reason), function=takes.name, name=found.name)


def _is_test_of_errors(scene: Scene, call: ast.Call) -> bool:
    """`with pytest.raises(TypeError):` expects just that."""
    return any(
        isinstance(up, ast.With) and "aises" in scene.text(up.items[0].context_expr)
        for up in scene.ancestors(call)
    )
