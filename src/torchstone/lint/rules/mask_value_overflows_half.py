"""A mask value such as -1e9 does not exist in float16."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from torchstone.core.finding import Confidence
from torchstone.core.fix import Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import torch_name
from torchstone.lint.knowledge.numbers import number
from torchstone.lint.rule import CERTAIN, HIGH, LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.lint.values.half_operands import half_here, subject
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS120",
    "mask-value-overflows-half",
    severity=HIGH,
    say=Text(
        en="`{value}` does not fit into the float16 tensor that `{call}` fills",
        zh="`{value}` 超出 `{call}` 所填充的 float16 张量的范围",
    ),
    why=Text(
        en="float16 ends at 65504: this raises `RuntimeError: value cannot be converted to type "
        "c10::Half without overflow`",
        zh="float16 的上限是 65504：此处会抛出 `RuntimeError: value cannot be converted to type "
        "c10::Half without overflow`",
    ),
    suggest=Text(
        en="take the value from the type: `torch.finfo({tensor}.dtype).min`",
        zh="按类型取值：`torch.finfo({tensor}.dtype).min`",
    ),
    title=Text(
        en="A fill value beyond 65504 does not fit into a float16 tensor",
        zh="填充值超过 65504，超出 float16 张量的范围",
    ),
    page=Text(
        en="""\
Attention masks are often filled with -1e9, which float32 and bfloat16 can hold and float16 cannot.
`masked_fill`, `masked_fill_`, `fill_`, `full`, `full_like` and `new_full` check the value and raise;
`where`, `+` and assignment by index give -inf without a word.

Reported where the tensor is float16 as far as the file tells: cast or made so, or the result of a
matrix product, linear layer or convolution inside a float16 autocast region (`torch.autocast("cuda")`
is float16 unless it says otherwise), also when every caller opens the region.

Quiet for bfloat16, for `float("-inf")` and `torch.finfo(…).min`, for types that are not known, and
in tests. `-inf` turns fully masked rows into NaN after a softmax; the smallest value of the type
does not. The fix changes the number in float32 runs too, hence it is unsafe.""",
        zh="""\
注意力掩码常填 -1e9，float32 和 bfloat16 能表示，float16 不能。`masked_fill`、`masked_fill_`、`fill_`、`full`、
`full_like`、`new_full` 会检查数值并报错；`where`、`+` 和下标赋值则悄悄得到 -inf。

仅当文件表明张量是 float16 时报告：被转换或创建为该类型，或是 float16 autocast 区域内矩阵乘、线性层、卷积的结果
（`torch.autocast("cuda")` 未另行说明即为 float16），包括所有调用者都打开区域的情况。

bfloat16、`float("-inf")`、`torch.finfo(…).min`、类型未知以及测试中不报告。整行被掩蔽时，`-inf` 经 softmax 会变成
NaN，而类型的最小值不会。修复也会改变 float32 运行时的数值，因此标为不安全。""",
    ),
    bad="""\
import torch

def attend(q, k, v, mask):
    with torch.autocast("cuda"):
        scores = q @ k.transpose(-2, -1) / 8.0
        scores = scores.masked_fill(mask == 0, -1e9)
        return scores.softmax(-1) @ v
""",
    fixed="""\
@@ -6 +6 @@
-        scores = scores.masked_fill(mask == 0, -1e9)
+        scores = scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)
""",
)
_FACTORIES = frozenset(("torch.full", "torch.full_like"))
_PLACES = {
    "masked_fill": 1,
    "masked_fill_": 1,
    "fill_": 0,
    "new_full": 1,
    "full": 1,
    "full_like": 1,
}
_LARGEST = 65504.0


@RULE.on_call(*_PLACES)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """A literal beyond float16 in a call that checks its range."""
    name = scene.last_name(call.func)
    factory = scene.qualified(call.func) in _FACTORIES
    if not factory and not scene.method(call):
        return
    value = scene.argument(call, _PLACES[name], "fill_value" if "full" in name else "value")
    size = number(scene, value)
    if value is None or size is None or math.isinf(size) or not abs(size) > _LARGEST:
        return
    tensor, confidence = _half(call, name, scene)
    if confidence is None or scene.is_test:
        return
    shown = scene.text(tensor) if tensor is not None else ""
    yield RULE.at(
        call,
        severity=HIGH if confidence is CERTAIN else MEDIUM,
        confidence=confidence,
        fix=_fix(call, value, size, tensor, scene),
        value=scene.brief(value),
        call=scene.brief(call.func),
        tensor=shown if shown.isidentifier() else "x",
    )


def _half(call: ast.Call, name: str, scene: Scene) -> tuple[ast.expr | None, Confidence | None]:
    tensor = subject(scene, call) if name not in ("full", "new_full") else None
    dtype = scene.keyword(call, "dtype")
    if dtype is not None:
        return tensor, CERTAIN if scene.dtype_literal(dtype) == "float16" else None
    if name == "full":
        return None, None
    known, sure = half_here(scene, tensor if tensor is not None else scene.receiver(call))
    if known != "float16":
        return tensor, None
    return tensor, CERTAIN if sure else LIKELY


def _fix(
    call: ast.Call, value: ast.expr, size: float, tensor: ast.expr | None, scene: Scene
) -> Fix | None:
    torch = torch_name(scene)
    dtype = scene.keyword(call, "dtype")
    of = scene.text(dtype) if dtype is not None else ""
    if isinstance(tensor, ast.Name):
        of = of or f"{tensor.id}.dtype"
    if not torch or not of or isinstance(value, ast.Name):
        return None
    return unsafe(scene.replace(value, f"{torch}.finfo({of}).{'min' if size < 0 else 'max'}"))
