"""A sum in half overflows, or stops counting."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import torch_name
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.lint.values.half_operands import half_operand, subject
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS105",
    "half-reduction",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{call}` reduces {dtype} values outside autocast",
        zh="`{call}` 在 autocast 之外对 {dtype} 值做归约",
    ),
    why=Text(
        en="the result is {dtype} too, without the float32 that autocast would give: {danger}",
        zh="结果同样是 {dtype}，失去 autocast 提供的 FP32 保护：{danger}",
    ),
    suggest=Text(en="reduce in float32: `{better}`", zh="改用 float32 归约：`{better}`"),
    title=Text(
        en="A sum, mean or other reduction of half-precision values outside autocast overflows or "
        "loses digits",
        zh="在 autocast 之外对半精度值求和、求均值等归约，会溢出或丢失精度",
    ),
    page=Text(
        en="""\
Kernels add up in float32 inside, but the result is rounded to the input's type. float16: inf above
65504, whole numbers exact up to 2048 only. bfloat16: whole numbers exact up to 256 only, so
`torch.ones(257, dtype=torch.bfloat16).sum()` is 256: token counts and loss normalisers go wrong
silently. Norms and variances overflow in float16 once the squares do; a mean loses digits only.

Reported where the input is half on some path: cast by hand, made under autocast and used after it,
computed by a network that the project casts to half, or passed in by a caller. Covers sum, mean, prod, cumsum, cumprod, norm, var, std,
logsumexp and their `nan` forms.

CUDA's autocast runs sum, prod, cumsum, cumprod, norm and logsumexp in float32, so these are quiet
inside it; mean, var and std are in no list, and the CPU's list holds only prod, so they are
reported. Quiet with `dtype=`, without gradients and in tests; `--strict` reports what was thought
harmless, with the reason. The fix changes the type of the result, hence it is
unsafe.""",
        zh="""\
内核内部以 float32 累加，但结果会舍入到输入的类型。float16：超过 65504 为 inf，整数只在 2048 以内精确；
bfloat16：整数只在 256 以内精确，`torch.ones(257, dtype=torch.bfloat16).sum()` 得 256，token 计数和损失的
归一化会悄悄出错。float16 的范数和方差在平方溢出时得 inf；均值只损失精度。

当输入在某条路径上是半精度时报告：手动转换、在 autocast 之内产生而在其外使用、由项目转换为半精度的网络计算，或由调用者传入。
涵盖 sum、mean、prod、cumsum、cumprod、norm、var、std、logsumexp 及其 `nan` 形式。

CUDA autocast 以 float32 运行 sum、prod、cumsum、cumprod、norm、logsumexp，在其内不报告；mean、var、std 不在
任何列表中，CPU 的列表只含 prod，照常报告。已传 `dtype=`、不求梯度以及测试中不报告；`--strict` 会报告被认为无害的情况
并说明原因。修复会改变结果的类型，因此标为
不安全。""",
    ),
    bad="""\
import torch

def count(mask):
    return mask.bfloat16().sum()
""",
    fixed="""\
@@ -4 +4 @@
-    return mask.bfloat16().sum()
+    return mask.bfloat16().sum(dtype=torch.float32)
""",
)
_TAKES_DTYPE = frozenset("sum mean prod cumsum cumprod nansum nanmean norm vector_norm".split())
_NO_DTYPE = frozenset("var std logsumexp".split())
_ROUNDED = frozenset("mean nanmean logsumexp".split())
_DANGERS = {
    ("float16", True): Text(en="it keeps three digits", zh="只保留三位有效数字"),
    ("bfloat16", True): Text(en="it keeps two to three digits", zh="只保留两三位有效数字"),
    ("float16", False): Text(
        en="inf above 65504, whole numbers exact only up to 2048",
        zh="超过 65504 即为 inf，整数只在 2048 以内精确",
    ),
    ("bfloat16", False): Text(
        en="8 bits, whole numbers exact only up to 256", zh="只有 8 位有效位，整数只在 256 以内精确"
    ),
}


@RULE.on_call(*_TAKES_DTYPE, *_NO_DTYPE)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """Half in, no dtype, no autocast that would help."""
    if scene.keyword(call, "dtype") is not None or scene.has_star(call):
        return
    name = scene.last_name(call.func)
    operator = scene.qualified(call.func) or name
    found = half_operand(scene, call, subject(scene, call), operator)
    if found is None:
        return
    torch = torch_name(scene) or "torch"
    danger = _DANGERS[found.precision, name in _ROUNDED]
    takes = name in _TAKES_DTYPE
    yield RULE.at(
        call,
        harmless=found.harmless,
        why=Text(
            RULE.why.en.replace("{danger}", danger.en), RULE.why.zh.replace("{danger}", danger.zh)
        ),
        fix=unsafe(scene.add_keyword(call, f"dtype={torch}.float32"))
        if takes and torch_name(scene)
        else None,
        call=scene.brief(call),
        dtype=found.dtype,
        better=f"{name}(…, dtype={torch}.float32)" if takes else f".float().{name}(…)",
    )
