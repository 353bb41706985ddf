"""A sum in half overflows, or stops counting."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import torch_name
from torchstone.lint.knowledge.half_values import HALF_WORDS, half_outside_autocast
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS105",
    "half-reduction",
    group="precision",
    severity=MEDIUM,
    confidence=LIKELY,
    also=HALF_WORDS,
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

Reported where the file shows that the input is half: `.half()`, `.bfloat16()`, `.to(torch.float16)`
or `dtype=` on the way to the call. Covers sum, mean, prod, cumsum, cumprod, norm, var, std,
logsumexp and their `nan` forms.

CUDA's autocast runs sum, prod, cumsum, cumprod, norm and logsumexp in float32, so these are quiet
inside it; mean, var and std are in no list, and the CPU's list holds only prod, so they are
reported. Quiet with `dtype=` and in tests. The fix changes the type of the result, hence it is
unsafe.""",
        zh="""\
内核内部以 float32 累加，但结果会舍入到输入的类型。float16：超过 65504 为 inf，整数只在 2048 以内精确；
bfloat16：整数只在 256 以内精确，`torch.ones(257, dtype=torch.bfloat16).sum()` 得 256，token 计数和损失的
归一化会悄悄出错。float16 的范数和方差在平方溢出时得 inf；均值只损失精度。

仅当文件表明输入是半精度时报告（调用之前有 `.half()`、`.bfloat16()`、`.to(torch.float16)` 或 `dtype=`）。
涵盖 sum、mean、prod、cumsum、cumprod、norm、var、std、logsumexp 及其 `nan` 形式。

CUDA autocast 以 float32 运行 sum、prod、cumsum、cumprod、norm、logsumexp，在其内不报告；mean、var、std 不在
任何列表中，CPU 的列表只含 prod，照常报告。已传 `dtype=` 以及测试中不报告。修复会改变结果的类型，因此标为
不安全。""",
    ),
    bad=(
        """\
import torch

def count(mask):
    return mask.bfloat16().sum()
""",
    ),
    fixed=(
        """\
@@ -4 +4 @@
-    return mask.bfloat16().sum()
+    return mask.bfloat16().sum(dtype=torch.float32)
""",
    ),
    good=(
        """\
import torch

def count(mask):
    return mask.bfloat16().sum(dtype=torch.float32)
""",
    ),
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
    found = half_outside_autocast(scene, call)
    if found is None or scene.is_test:
        return
    dtype, _ = found
    name = scene.last_name(call.func)
    torch = torch_name(scene) or "torch"
    danger = _DANGERS[dtype, name in _ROUNDED]
    takes = name in _TAKES_DTYPE
    yield RULE.at(
        call,
        why=Text(
            RULE.why.en.replace("{danger}", danger.en), RULE.why.zh.replace("{danger}", danger.zh)
        ),
        fix=unsafe(scene.add_keyword(call, f"dtype={torch}.float32"))
        if takes and torch_name(scene)
        else None,
        call=scene.brief(call),
        dtype=dtype,
        better=f"{name}(…, dtype={torch}.float32)" if takes else f".float().{name}(…)",
    )
