"""`exp(x) - 1` loses small x to rounding."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.rule import LOW, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS511",
    "exp-minus-one",
    in_every_torch=True,
    severity=LOW,
    aliases=("TOR107",),
    title=Text(
        en="Small values are lost to rounding when `exp(x) - 1` is computed in two steps",
        zh="分两步计算 `exp(x) - 1`，较小的值会因舍入丢失",
    ),
    say=Text(
        en="`{call}` loses small values of `{x}` to rounding",
        zh="`{call}` 会因舍入丢失较小的 `{x}`",
    ),
    why=Text(
        en="`exp(x)` rounds to 1 for |x| below 6e-8 in float32, 5e-4 in float16 and 4e-3 in "
        "bfloat16, and the subtraction leaves 0",
        zh="当 |x| 小于 6e-8（float32）、5e-4（float16）或 4e-3（bfloat16）时，`exp(x)` 舍入为 1，相减后只剩 0",
    ),
    suggest=Text(en="use `torch.expm1({x})`", zh="改用 `torch.expm1({x})`"),
    page=Text(
        en="Fires on `torch.exp(x) - 1` and `x.exp() - 1`. The fix is safe: it computes the same "
        "function, more exactly.",
        zh="检查 `torch.exp(x) - 1` 与 `x.exp() - 1`。修复是安全的：计算同一函数，只是更精确。",
    ),
    words=("exp",),
    bad="""\
import torch

y = torch.exp(x) - 1
""",
    fixed="""\
@@ -3 +3 @@
-y = torch.exp(x) - 1
+y = torch.expm1(x)
""",
)


@RULE.on(ast.BinOp)
def check(node: ast.BinOp, scene: Scene) -> Iterator[Hit]:
    """`torch.exp(x) - 1`"""
    right = node.right
    if not isinstance(node.op, ast.Sub) or not isinstance(node.left, ast.Call):
        return
    if not isinstance(right, ast.Constant) or right.value != 1 or isinstance(right.value, bool):
        return
    call = node.left
    if scene.qualified(call.func) in ("torch.exp", "torch.special.exp"):
        x = call.args[0] if len(call.args) == 1 and not call.keywords else None
    elif scene.method(call) == "exp" and not call.args and not call.keywords:
        x = scene.receiver(call)
    else:
        return
    if x is not None:
        yield RULE.at(node, fix=_fix(node, x, scene), call=scene.brief(node), x=scene.brief(x))


def _fix(node: ast.BinOp, x: ast.expr, scene: Scene) -> Fix | None:
    for local, target in scene.imports.aliases.items():
        if target == "torch":
            return safe(scene.replace(node, f"{local}.expm1({scene.text(x)})"))
    return None
