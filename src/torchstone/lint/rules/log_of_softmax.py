"""The logarithm of a probability that has already been rounded to zero."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.numbers import number
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS125",
    "log-of-softmax",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(en="logarithm of `{inner}`", zh="对 `{inner}` 取对数"),
    why=Text(
        en="probabilities round to 0 first (in float32 below e^-104, in float16 below e^-17), and "
        "their logarithm is -inf with NaN gradients",
        zh="概率会先舍入为 0（float32 下低于 e^-104，float16 下低于 e^-17），再取对数即为 -inf，梯度为 NaN",
    ),
    suggest=Text(en="use `{better}`, which stays exact", zh="改用 `{better}`，它保持精确"),
    title=Text(
        en="The logarithm of a softmax or sigmoid in two steps becomes -inf for small "
        "probabilities",
        zh="分两步计算 log(softmax(x)) 或 log(sigmoid(x))，概率很小时得到 -inf",
    ),
    page=Text(
        en="""\
`log(softmax(x))` is `x - logsumexp(x)`; computed in two steps the small probabilities are lost in
between: `torch.log(torch.softmax(torch.tensor([0., 200.]), 0))` gives -inf where `log_softmax` gives
-200. An eps inside the logarithm hides the -inf, but every small probability then has the same
value and no gradient.

Reported when a softmax or sigmoid of torch stands directly inside `log`, with or without an added
eps, or a `log` follows it. The fix keeps the arguments; it is offered where there is no eps. Quiet
when the probabilities have a name, because they may be used elsewhere too, and in tests.""",
        zh="""\
`log(softmax(x))` 等于 `x - logsumexp(x)`；分两步计算会在中间丢失小概率：
`torch.log(torch.softmax(torch.tensor([0., 200.]), 0))` 得 -inf，而 `log_softmax` 得 -200。在对数内加 eps 只是掩盖
-inf，所有小概率会变成同一个值且没有梯度。

判定：torch 的 softmax 或 sigmoid 直接位于 `log` 之内（无论是否加了 eps），或其后紧接 `.log()`。修复保留原参数，仅在
没有 eps 时提供。概率另有名字时可能还有别的用途，不报告；测试中也不报告。""",
    ),
    bad="""\
import torch
import torch.nn.functional as F

def log_probability(logits):
    return torch.log(F.softmax(logits, dim=-1))
""",
    fixed="""\
@@ -5 +5 @@
-    return torch.log(F.softmax(logits, dim=-1))
+    return F.log_softmax(logits, dim=-1)
""",
)
_SOFTMAX = frozenset(
    f"{home}.softmax" for home in ("torch", "torch.nn.functional", "torch.special")
)
_LARGEST_EPS = 1e-2  # above, it changes the value on purpose rather than protects it
_SIGMOID = frozenset(("torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit"))


@RULE.on_call("log")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.log(softmax(…))` and `softmax(…).log()`."""
    if scene.qualified(call.func) == "torch.log":
        inside = scene.argument(call, 0, "input")
        whole = len(call.args) == 1 and not call.keywords
    elif scene.method(call) == "log" and not call.args and not call.keywords:
        inside, whole = scene.receiver(call), True
    else:
        return
    eps = False
    if isinstance(inside, ast.Call) and scene.method(inside) in ("clamp", "clamp_min"):
        inside, eps = scene.receiver(inside), True  # cuts the gradient where it is needed most
    if isinstance(inside, ast.BinOp) and isinstance(inside.op, ast.Add):
        if not any(_is_eps(scene, side) for side in (inside.left, inside.right)):
            return  # log(1 + sigmoid(x)) never sees a zero
        sides = [_made(scene, side) for side in (inside.left, inside.right)]
        inside = next((side for side in sides if isinstance(side, ast.Call)), None)
        eps = True
    if not isinstance(inside, ast.Call) or scene.is_test:
        return
    full, method = scene.qualified(inside.func), scene.method(inside)
    soft = full in _SOFTMAX or (method == "softmax" and _is_tensor_method(inside, scene))
    if not soft and full not in _SIGMOID and not (method == "sigmoid" and not inside.args):
        return
    yield RULE.at(
        call,
        fix=_fix(call, inside, soft, scene) if whole and not eps else None,
        inner=scene.brief(inside),
        better="log_softmax" if soft else "logsigmoid",
    )


def _is_eps(scene: Scene, node: ast.expr) -> bool:
    """Whether a summand is there to keep a logarithm away from zero, or may be: a small number, or
    one under a name."""
    value = number(scene, node)
    if value is None:
        return isinstance(node, (ast.Name, ast.Attribute))
    return 0 < value <= _LARGEST_EPS


def _made(scene: Scene, node: ast.expr | None) -> ast.expr | None:
    """What a name stands for, when that is plain to see and only the logarithm reads it: an
    entropy needs the probabilities too."""
    if not isinstance(node, ast.Name):
        return node
    home = scene.scope(node)
    reads = [n for n in scene.all(ast.Name) if n.id == node.id and scene.scope(n) is home]
    once = sum(isinstance(n.ctx, ast.Load) for n in reads) == 1
    return scene.value(node) if once else None


def _is_tensor_method(inner: ast.Call, scene: Scene) -> bool:
    """`x.softmax(-1)`, not a layer of that name: `self.softmax(x)`."""
    dim = scene.argument(inner, 0, "dim")
    return (
        isinstance(dim, (ast.Constant, ast.UnaryOp))
        and scene.dotted(scene.receiver(inner)) != "self"
    )


def _fix(call: ast.Call, inner: ast.Call, soft: bool, scene: Scene) -> Fix | None:
    if not isinstance(inner.func, ast.Attribute):
        return None
    arguments = scene.text(inner)[len(scene.text(inner.func)) :]
    home = scene.text(inner.func.value)
    if soft:
        return safe(scene.replace(call, f"{home}.log_softmax{arguments}"))
    functional = next(
        (n for n, full in scene.imports.aliases.items() if full == "torch.nn.functional"), ""
    )
    if not functional or scene.method(inner):
        return None
    return safe(scene.replace(call, f"{functional}.logsigmoid{arguments}"))
