"""Casting up after the product does not bring back what the product has lost."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.autocast_ops import is_lowered
from torchstone.lint.rule import LIKELY, LOW, MEDIUM, Hit, Rule
from torchstone.lint.values.half_operands import subject
from torchstone.lint.values.reach import HALF_WORDS, speaks_of_half
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS112",
    "late-float-cast",
    severity=MEDIUM,
    confidence=LIKELY,
    also=HALF_WORDS,
    say=Text(
        en="`{cast}` comes after the {dtype} product `{product}`",
        zh="`{cast}` 出现在 {dtype} 乘积 `{product}` 之后",
    ),
    why=Text(
        en="the product has already been rounded to {dtype}{danger}; the cast only makes the "
        "rounded numbers wider",
        zh="乘积已舍入到 {dtype}{danger}，之后的转换只是把舍入后的数变宽",
    ),
    suggest=Text(
        en="cast the operands before the product, or scale them first so that the product stays "
        "small",
        zh="在相乘之前转换操作数，或先缩放操作数使乘积保持较小",
    ),
    title=Text(
        en="A half-precision matrix product is cast to float32 only after it has overflowed or "
        "lost digits",
        zh="半精度矩阵乘的结果在溢出或丢失精度之后才转换为 float32",
    ),
    page=Text(
        en="""\
A matrix product of float16 values adds up in float32 inside but its result is float16: inf from
65504 on, three digits below. `.float()` after it keeps inf and the lost digits. Attention scores
are the usual place: `(q.half() @ k.half().mT).float()`; dividing `q` by the root of the head size
before the product avoids the overflow at no cost.

Reported where both operands are half as far as the file tells, and the result is cast to float32 or
float64 at once or in the next use of its name. MEDIUM for float16, LOW for bfloat16, which cannot
overflow here. Quiet under autocast, where the product is half by choice and a cast up before a
softmax or a loss is good practice; quiet when the types are not known, and in tests.""",
        zh="""\
float16 的矩阵乘在内部以 float32 累加，但结果是 float16：达到 65504 即为 inf，以下只有三位有效数字。其后的 `.float()`
保留 inf，也找不回丢失的位数。常见于注意力分数：`(q.half() @ k.half().mT).float()`；在相乘之前把 `q` 除以头维度的
平方根即可避免溢出，且没有额外开销。

仅当文件表明两个操作数都是半精度，且结果随即（或在其名字的下一次使用时）转换为 float32 或 float64 时报告。float16 为
MEDIUM，bfloat16 为 LOW（此处不会溢出）。autocast 之内乘积为半精度是有意为之，在 softmax 或损失之前提升精度是好习惯，
不报告；类型未知以及测试中也不报告。""",
    ),
    bad="""\
import torch

def scores(q, k):
    q, k = q.half(), k.half()
    return torch.matmul(q, k.transpose(-2, -1)).float()
""",
    good="""\
import torch

def scores(q, k):
    q, k = q.half(), k.half()
    return torch.matmul(q.float(), k.transpose(-2, -1).float())
""",
)
_WIDE = frozenset(("float32", "float", "float64", "double"))
_DANGER = Text(en=", and to inf above 65504", zh="，超过 65504 即为 inf")
_NO_DANGER = Text(en="", zh="")


@RULE.on_call("float", "double", "to")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """A cast to a wider type of a product whose operands are half."""
    method = scene.method(call)
    if not method or not speaks_of_half(scene):
        return
    if method == "to":
        if not any(scene.last_name(item) in _WIDE for item in call.args):
            return
    elif call.args:
        return
    product = scene.receiver(call)
    if isinstance(product, ast.Name):
        product = scene.value(product)
    operands = _operands(product, scene)
    dtypes = {scene.dtype(item) for item in operands}
    if len(operands) < 2 or dtypes not in ({"float16"}, {"bfloat16"}) or scene.is_test:
        return
    if product is None or scene.region(product).autocast is not None:
        return
    dtype = dtypes.pop()
    danger = _DANGER if dtype == "float16" else _NO_DANGER
    yield RULE.at(
        call,
        severity=MEDIUM if dtype == "float16" else LOW,
        why=Text(
            RULE.why.en.replace("{danger}", danger.en), RULE.why.zh.replace("{danger}", danger.zh)
        ),
        cast=f".{method}(…)" if call.args else f".{method}()",
        product=scene.brief(product),
        dtype=dtype,
    )


def _operands(node: ast.expr | None, scene: Scene) -> list[ast.expr]:
    """The tensors that a matrix product multiplies; empty for anything else."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return [node.left, node.right]
    if not isinstance(node, ast.Call):
        return []
    full, method = scene.qualified(node.func), scene.method(node)
    if method in ("matmul", "mm", "bmm") and len(node.args) == 1:
        receiver = subject(scene, node)
        return [receiver, node.args[0]] if receiver is not None else []
    if full.startswith("torch.") and is_lowered(full):
        return [item for item in node.args[:2] if not isinstance(item, ast.Constant)]
    return []
