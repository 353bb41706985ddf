"""An eps that float16 rounds to zero protects from nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.lint.knowledge.autocast_ops import runs_in_fp32
from torchstone.lint.knowledge.numbers import number
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, Hit, Rule
from torchstone.lint.values.half_operands import half_here, subject
from torchstone.lint.values.reach import speaks_of_half
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS113",
    "eps-below-half",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="eps `{eps}` is {becomes} in float16, in `{place}`",
        zh="`{place}` 中的 eps `{eps}` 在 float16 下{becomes}",
    ),
    why=Text(
        en="float16 has nothing between 0 and 6e-8, and 1/x is inf below 1.5e-5: the division or "
        "logarithm that eps should guard gives inf or NaN",
        zh="float16 在 0 与 6e-8 之间没有数，x 小于 1.5e-5 时 1/x 即为 inf：eps 本应保护的除法或对数会得到 "
        "inf 或 NaN",
    ),
    suggest=Text(
        en="compute it in float32 (`.float()`), or use an eps of at least 6e-5",
        zh="改用 float32 计算（`.float()`），或取不小于 6e-5 的 eps",
    ),
    title=Text(
        en="An eps too small for float16 no longer guards a division or logarithm",
        zh="eps 小到 float16 无法表示，保护不了除法或对数",
    ),
    page=Text(
        en="""\
A number added to a float16 tensor is rounded with the sum: `x + 1e-8` is `x`, `x.clamp(min=1e-8)`
clamps at 0. float16 flushes to 0 at 3e-8, its smallest value is 6e-8, its smallest normal one
6.1e-5. bfloat16 has float32's range; there 1e-8 and even 1e-12 are fine.

Reported where the value is float16 as far as the file tells (cast by hand, or the result of a
matrix product, linear layer or convolution inside a float16 autocast region) and eps stands in
`value + eps` below a division, a logarithm or a reciprocal root, in `clamp(min=eps)`, or in
`F.normalize` / `F.cosine_similarity` outside autocast, whose own defaults are 1e-12 and 1e-8. HIGH
when eps becomes 0, MEDIUM when its reciprocal is inf.

Quiet for bfloat16, unknown types, norm layers (they compute in float32 inside) and in tests.""",
        zh="""\
加到 float16 张量上的数会随和一起舍入：`x + 1e-8` 就是 `x`，`x.clamp(min=1e-8)` 等于在 0 处截断。float16 在 3e-8
处归零，最小值 6e-8，最小正规数 6.1e-5。bfloat16 的范围与 float32 相同，1e-8 乃至 1e-12 都没有问题。

仅当文件表明值是 float16（手动转换，或 float16 autocast 区域内矩阵乘、线性层、卷积的结果），且 eps 出现在除法、对数
或平方根倒数之下的 `value + eps`、`clamp(min=eps)`，或 autocast 之外的 `F.normalize` / `F.cosine_similarity`（默认
eps 分别为 1e-12 和 1e-8）时报告。eps 变为 0 时为 HIGH，其倒数为 inf 时为 MEDIUM。

bfloat16、类型未知、归一化层（内部以 float32 计算）以及测试中不报告。""",
    ),
    words=("half", "float16", "autocast"),
    bad="""\
import torch

def scale(x, weight):
    weight = weight.half()
    return x / (weight + 1e-8)
""",
    good="""\
import torch

def scale(x, weight):
    weight = weight.half()
    return x / (weight.float() + 1e-8)
""",
)
_FLUSHED = 2.0**-25
_INFINITE_RECIPROCAL = 1 / 65504
_GUARDED = frozenset("log log2 log10 rsqrt reciprocal".split())
_DEFAULTS = {"normalize": (3, 1e-12), "cosine_similarity": (3, 1e-8)}


@RULE.on(ast.BinOp)
def check_sum(node: ast.BinOp, scene: Scene) -> Iterator[Hit]:
    """`value + eps` under a division or a logarithm."""
    if not isinstance(node.op, ast.Add) or not speaks_of_half(scene):
        return
    for eps, value in ((node.right, node.left), (node.left, node.right)):
        written = isinstance(eps, ast.Constant) or "eps" in scene.last_name(eps)
        size = number(scene, eps) if written else None
        if size is None or not 0 < size < _INFINITE_RECIPROCAL or not _guards(node, scene):
            continue
        known, sure = half_here(scene, value)
        if known == "float16" and not scene.is_test:
            yield _hit(node, eps, size, scene, sure)


@RULE.on_call("clamp", "clamp_min", "clip", "clamp_")
def check_clamp(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`value.clamp(min=eps)`."""
    method = bool(scene.method(call))
    eps = scene.argument(call, 0 if method else 1, "min")
    size = number(scene, eps)
    if eps is None or size is None or not 0 < size <= _FLUSHED:
        return
    known, sure = half_here(scene, subject(scene, call))
    if known == "float16" and not scene.is_test:
        yield _hit(call, eps, size, scene, sure)


@RULE.on_call(*_DEFAULTS)
def check_default(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`F.normalize(value)`: its eps is 1e-12 unless another is given."""
    name = scene.last_name(call.func)
    if scene.qualified(call.func) != f"torch.nn.functional.{name}" or scene.has_star(call):
        return
    place, default = _DEFAULTS[name]
    eps = scene.argument(call, place, "eps")
    size = number(scene, eps) if eps is not None else default
    value = scene.argument(call, 0, "input")
    if size is None or not 0 < size <= _FLUSHED or scene.dtype(value) != "float16":
        return
    cast = scene.region(call).autocast
    if (cast is None or not runs_in_fp32(name, cast.device)) and not scene.is_test:
        yield _hit(call, eps, size, scene)


def _hit(place: ast.AST, eps: ast.expr | None, size: float, scene: Scene, sure: bool = True) -> Hit:
    severity, becomes = _severity(size)
    return RULE.at(
        place,
        severity=severity if sure else MEDIUM,
        say=Text(
            RULE.say.en.replace("{becomes}", becomes.en),
            RULE.say.zh.replace("{becomes}", becomes.zh),
        ),
        eps=scene.brief(eps) if eps is not None else f"{size:g}",
        place=scene.brief(place),
    )


def _severity(size: float) -> tuple[Severity, Text]:
    if size <= _FLUSHED:
        return HIGH, Text("0", "等于 0")
    return MEDIUM, Text("too small: its reciprocal is inf", "过小，倒数为 inf")


def _guards(node: ast.BinOp, scene: Scene) -> bool:
    """Whether the sum is divided by, or goes into a logarithm or a reciprocal root."""
    up = scene.parent(node)
    if isinstance(up, ast.BinOp):
        return isinstance(up.op, ast.Div) and up.right is node
    if isinstance(up, ast.Call) and node in up.args:
        return scene.last_name(up.func) in _GUARDED
    if isinstance(up, ast.Attribute):
        return up.attr in _GUARDED
    return False
