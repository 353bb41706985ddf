"""Casting by hand takes values out of autocast's care."""

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, LOW, POSSIBLE, Rule

RULE = Rule(
    "TS101",
    "manual-half-cast",
    group="precision",
    severity=HIGH,
    say=Text(en=".{cast}() call detected", zh=".{cast}() call detected"),
    why=Text(
        en="a manual cast can bypass AMP's protection",
        zh="手动类型转换可能绕过AMP保护",
    ),
    suggest=Text(
        en="remove .{cast}() and use `with autocast()`",
        zh="删除.{cast}()，使用with autocast()",
    ),
    bad=("import torch\n\ndef step(x, w):\n    x = x.half()\n    return x @ w\n",),
    page=Text(en="x", zh="x"),
    good=("import torch\n\ndef step(x, w):\n    with torch.autocast('cuda'):\n        return x @ w\n",),
)


@RULE.on_call("half", "bfloat16")
def check(call, scene):
    if not scene.method(call) or call.args or call.keywords:
        return
    yield RULE.at(call, cast=call.func.attr)
