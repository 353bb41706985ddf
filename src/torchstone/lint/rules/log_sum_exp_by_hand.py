"""`log(sum(exp(x)))` overflows where logsumexp does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.rule import MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS512",
    "log-sum-exp-by-hand",
    in_every_torch=True,
    severity=MEDIUM,
    aliases=("TOR108",),
    title=Text(
        en="Large values overflow when `log(sum(exp(x)))` is computed in three steps",
        zh="分三步计算 `log(sum(exp(x)))`，较大的值会溢出",
    ),
    say=Text(
        en="`{call}` becomes inf for large and -inf for small values of `{x}`",
        zh="`{call}` 在 `{x}` 较大时得到 inf，较小时得到 -inf",
    ),
    why=Text(
        en="`exp` overflows above 88.7 in float32 and bfloat16, and above 11.1 in float16; one inf "
        "turns the loss and all gradients into nan",
        zh="`exp` 在 float32 与 bfloat16 中超过 88.7、在 float16 中超过 11.1 就会溢出；出现一个 inf，损失和"
        "全部梯度都会变成 nan",
    ),
    suggest=Text(
        en="use `torch.logsumexp({x}, dim=...)`, which subtracts the maximum first",
        zh="改用先减去最大值的 `torch.logsumexp({x}, dim=...)`",
    ),
    page=Text(
        en="Fires on `torch.log(torch.sum(torch.exp(x), dim))` and its forms as methods. Quiet "
        "where `x` is a difference, there or where it was made: then the maximum may have been subtracted by hand.\n\n"
        "The fix is safe; it needs a `dim`, since `logsumexp` asks for one. For a sum over "
        "everything use `torch.logsumexp(x.flatten(), 0)`.",
        zh="检查 `torch.log(torch.sum(torch.exp(x), dim))` 及其方法形式。若 `x` 本身（或其来源）是差，可能已手动减去最大"
        "值，不报告。\n\n"
        "修复是安全的，但需要 `dim`，因为 `logsumexp` 必须指定。对全部元素求和时用 "
        "`torch.logsumexp(x.flatten(), 0)`。",
    ),
    needs=("exp", "sum"),
    bad="""\
import torch

y = torch.log(torch.sum(torch.exp(x), dim=1, keepdim=True))
""",
    fixed="""\
@@ -3 +3 @@
-y = torch.log(torch.sum(torch.exp(x), dim=1, keepdim=True))
+y = torch.logsumexp(x, dim=1, keepdim=True)
""",
)


@RULE.on_call("log")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.log(torch.sum(torch.exp(x), 1))`"""
    total, extra = _operand(call, "log", scene)
    if extra or not isinstance(total, ast.Call):
        return
    inner, dims = _operand(total, "sum", scene)
    if not isinstance(inner, ast.Call):
        return
    x, rest = _operand(inner, "exp", scene)
    if x is None or rest or _shifted(scene.value(x) if isinstance(x, ast.Name) else x):
        return
    yield RULE.at(call, fix=_fix(call, x, dims, scene), call=scene.brief(call), x=scene.brief(x))


def _shifted(x: ast.expr | None) -> bool:
    """Whether something was subtracted that may be the maximum."""
    return (
        isinstance(x, ast.BinOp)
        and isinstance(x.op, ast.Sub)
        and not isinstance(x.right, ast.Constant)
    )


def _operand(
    call: ast.Call, name: str, scene: Scene
) -> tuple[ast.expr | None, list[ast.expr | ast.keyword]]:
    """The tensor that `torch.name(x, …)` or `x.name(…)` works on, and the other arguments."""
    if scene.qualified(call.func) == f"torch.{name}":
        if not call.args or isinstance(call.args[0], ast.Starred):
            return None, []
        return call.args[0], [*call.args[1:], *call.keywords]
    if scene.method(call) == name:
        return scene.receiver(call), [*call.args, *call.keywords]
    return None, []


def _fix(
    call: ast.Call, x: ast.expr, dims: list[ast.expr | ast.keyword], scene: Scene
) -> Fix | None:
    names = [part.arg if isinstance(part, ast.keyword) else "" for part in dims]
    given = dims[0] if dims and names[0] in ("", "dim") else None
    value = given.value if isinstance(given, ast.keyword) else given
    if value is None or scene.literal(value) is None or set(names) - {"", "dim", "keepdim"}:
        return None
    rest = ", ".join(scene.text(part) for part in dims)
    for local, target in scene.imports.aliases.items():
        if target == "torch":
            return safe(scene.replace(call, f"{local}.logsumexp({scene.text(x)}, {rest})"))
    return None
