"""`log(1 + x)` loses small x to rounding."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.rule import LOW, Hit, Rule, safe
from torchstone.sources.scene import Scene

_SOFTPLUS = Text(
    en="this is softplus: use `torch.nn.functional.softplus({x})`, which does not overflow either",
    zh="这就是 softplus：改用同样不会溢出的 `torch.nn.functional.softplus({x})`",
)

RULE = Rule(
    "TS510",
    "log-of-one-plus",
    in_every_torch=True,
    severity=LOW,
    aliases=("TOR106",),
    title=Text(
        en="Small values are lost to rounding when `log(1 + x)` is computed in two steps",
        zh="分两步计算 `log(1 + x)`，较小的值会因舍入丢失",
    ),
    say=Text(
        en="`{call}` loses small values of `{x}` to rounding",
        zh="`{call}` 会因舍入丢失较小的 `{x}`",
    ),
    why=Text(
        en="`1 + x` rounds to 1 for |x| below 6e-8 in float32, 5e-4 in float16 and 4e-3 in bfloat16, "
        "and the answer is 0",
        zh="当 |x| 小于 6e-8（float32）、5e-4（float16）或 4e-3（bfloat16）时，`1 + x` 舍入为 1，结果变为 0",
    ),
    suggest=Text(en="use `torch.log1p({x})`", zh="改用 `torch.log1p({x})`"),
    page=Text(
        en="Fires on `torch.log(1 + x)`, `torch.log(x + 1)` and `(1 + x).log()`. `log(1 + exp(x))` "
        "is softplus and gets that advice, without a fix.\n\n"
        "The fix is safe: it computes the same function, more exactly.",
        zh="检查 `torch.log(1 + x)`、`torch.log(x + 1)` 与 `(1 + x).log()`。`log(1 + exp(x))` 即 softplus，"
        "会给出相应建议，但不自动修复。\n\n"
        "修复是安全的：计算同一函数，只是更精确。",
    ),
    bad="""\
import torch

y = torch.log(1 + x)
""",
    fixed="""\
@@ -3 +3 @@
-y = torch.log(1 + x)
+y = torch.log1p(x)
""",
)


@RULE.on_call("log")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.log(1 + x)`"""
    receiver = scene.receiver(call)
    if scene.qualified(call.func) == "torch.log":
        inner = call.args[0] if len(call.args) == 1 and not call.keywords else None
    elif isinstance(receiver, ast.BinOp) and not call.args and not call.keywords:
        inner = receiver
    else:
        return
    x = _added(inner, scene)
    if x is None:
        return
    softplus = isinstance(x, ast.Call) and scene.last_name(x.func) == "exp"
    shown = x
    if softplus and isinstance(x, ast.Call):
        shown = x.args[0] if x.args else scene.receiver(x) or x
    yield RULE.at(
        call,
        suggest=_SOFTPLUS if softplus else None,
        fix=None if softplus else _fix(call, x, scene),
        call=scene.brief(call),
        x=scene.brief(shown),
    )


def _added(node: ast.AST | None, scene: Scene) -> ast.expr | None:
    """`x` of `1 + x` or `x + 1`, when it is no plain number itself."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return None
    for one, other in ((node.left, node.right), (node.right, node.left)):
        value = one.value if isinstance(one, ast.Constant) else None
        if value == 1 and not isinstance(value, bool) and not isinstance(other, ast.Constant):
            return other
    return None


def _fix(call: ast.Call, x: ast.expr, scene: Scene) -> Fix | None:
    for local, target in scene.imports.aliases.items():
        if target == "torch":
            return safe(scene.replace(call, f"{local}.log1p({scene.text(x)})"))
    return None
