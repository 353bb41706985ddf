"""A softmax in half keeps few digits of its probabilities."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import torch_name
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.lint.values.analysis import value_at
from torchstone.lint.values.half_operands import half_operand, subject
from torchstone.lint.values.value import Kind
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS104",
    "softmax-on-half",
    severity=MEDIUM,
    confidence=LIKELY,
    words=("Softmax", "LogSoftmax"),
    say=Text(
        en="`{call}` runs on {dtype} without a dtype of its own",
        zh="`{call}` 作用于 {dtype} 且未指定 dtype",
    ),
    why=Text(
        en="no autocast is open here to run it in float32, so {danger}",
        zh="此处没有 autocast 将其提升到 float32，{danger}",
    ),
    suggest=Text(
        en="pass dtype=torch.float32 and cast the result back where half is needed",
        zh="传入 dtype=torch.float32，需要半精度的地方再转换结果",
    ),
    title=Text(
        en="Softmax of half-precision values runs outside autocast without a dtype and loses "
        "accuracy",
        zh="在 autocast 之外对半精度值做 softmax 且未指定 dtype，会损失精度",
    ),
    page=Text(
        en="""\
The kernels subtract the maximum and sum in float32, so the sum itself does not overflow; what is
lost is the result. In float16 probabilities below 6e-8 become 0 (a later `log` gives -inf); in
bfloat16 each is rounded to 8 bits, and a row no longer sums to 1.

Reported where the input is half on some path: cast by hand, made under autocast and used after it,
computed by a network that the project casts to half, or passed in by a caller. Functions, methods and
`nn.Softmax` objects count.

Quiet under CUDA autocast, which runs softmax and log_softmax in float32 (CPU autocast does not), and
without gradients, where half probabilities are usually good enough; `--strict` reports both, and calls
whose input is not seen to be half, with the reason. Quiet with `dtype=` and in tests. The fix changes the type of the result, hence it is
unsafe.""",
        zh="""\
内核会先减去最大值并以 float32 求和，求和本身不会溢出，丢失的是结果的精度：float16 下小于 6e-8 的概率变为 0
（之后取 `log` 得 -inf），bfloat16 下每个概率只剩 8 位有效位，一行之和不再是 1。

当输入在某条路径上是半精度时报告：手动转换、在 autocast 之内产生而在其外使用、由项目转换为半精度的网络计算，或由调用者传入。
函数、方法和 `nn.Softmax` 对象都计入。

CUDA autocast 会以 float32 运行 softmax 和 log_softmax（CPU autocast 不会），不求梯度时半精度概率通常够用，这两种情况不报告；
`--strict` 会报告它们以及未见半精度输入的调用，并说明原因。已传 `dtype=` 以及测试中不报告。修复会改变结果的类型，因此标为不安全。""",
    ),
    bad="""\
import torch
import torch.nn.functional as F

def attend(q, k, v):
    scores = (q @ k.transpose(-2, -1)).half()
    return F.softmax(scores, dim=-1) @ v
""",
    fixed="""\
@@ -6 +6 @@
-    return F.softmax(scores, dim=-1) @ v
+    return F.softmax(scores, dim=-1, dtype=torch.float32) @ v
""",
    good="""\
@@ -6 +6 @@
-    return F.softmax(scores, dim=-1) @ v
+    return F.softmax(scores, dim=-1, dtype=torch.float32).to(v.dtype) @ v
""",
)
_FUNCTIONS = frozenset(
    f"{home}.{name}"
    for home in ("torch", "torch.nn.functional", "torch.special")
    for name in ("softmax", "log_softmax")
)
_PLACE_OF_DTYPE = {"torch.nn.functional": 3, "torch": 2, "torch.special": 2}
_DANGERS = {
    "float16": Text(
        en="probabilities below 6e-8 become 0 and the others keep three digits",
        zh="小于 6e-8 的概率变为 0，其余只剩三位有效数字",
    ),
    "bfloat16": Text(
        en="each probability is rounded to 8 bits and a row no longer sums to 1",
        zh="每个概率被舍入到 8 位有效位，一行之和不再是 1",
    ),
}


@RULE.on_call("softmax", "log_softmax")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """The functions and methods."""
    full = scene.qualified(call.func)
    if not scene.method(call) and full not in _FUNCTIONS:
        return
    place = _PLACE_OF_DTYPE.get(full.rpartition(".")[0], 1)
    if scene.has_star(call) or scene.argument(call, place, "dtype") is not None:
        return
    torch = torch_name(scene)
    fix = unsafe(scene.add_keyword(call, f"dtype={torch}.float32")) if torch else None
    yield from _judged(call, subject(scene, call), scene, fix)


@RULE.on_file
def check_modules(scene: Scene) -> Iterator[Hit]:
    """Calls of `nn.Softmax` and `nn.LogSoftmax` objects."""
    if not scene.calls.get("Softmax") and not scene.calls.get("LogSoftmax"):
        return
    for call in scene.all(ast.Call):
        if call.args and not scene.qualified(call.func):
            found = value_at(scene, call.func)
            if found.kind is Kind.MODULE and found.name.endswith(("Softmax", "Softmax2d")):
                yield from _judged(call, call.args[0], scene, None)


def _judged(
    call: ast.Call, tensor: ast.expr | None, scene: Scene, fix: Fix | None
) -> Iterator[Hit]:
    """Half in, no dtype, no autocast that would help."""
    found = half_operand(scene, call, tensor, "softmax")
    if found is None:
        return
    danger = _DANGERS[found.precision]
    yield RULE.at(
        call,
        harmless=found.harmless,
        why=Text(
            RULE.why.en.replace("{danger}", danger.en), RULE.why.zh.replace("{danger}", danger.zh)
        ),
        fix=fix,
        call=scene.brief(call),
        dtype=found.dtype,
    )
