"""A running total in half stops growing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import loop_around
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene
from torchstone.sources.values import Binding

RULE = Rule(
    "TS114",
    "half-accumulator",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(en="`{name}` adds up in {dtype} over a loop", zh="`{name}` 在循环中以 {dtype} 累加"),
    why=Text(
        en="each sum is rounded to {bits} bits: adding ones, the total stops at {stop} for ever",
        zh="每次相加都舍入到 {bits} 位有效位：逐次加 1 时，总和到 {stop} 就不再增长",
    ),
    suggest=Text(
        en="keep `{name}` in float32 and add `value.float()`",
        zh="让 `{name}` 保持 float32，累加 `value.float()`",
    ),
    title=Text(
        en="A running sum is kept in half precision and stops growing",
        zh="累加值以半精度保存，会停止增长",
    ),
    page=Text(
        en="""\
Unlike `sum()`, which adds in float32 inside and rounds once, a Python loop rounds after every
addition. A number that is smaller than half the last bit of the total is lost: float16 has 11 bits
(5000 times 1.0 gives 2048), bfloat16 8 (gives 256).

Reported for `total += value` and `total = total + value` in a loop when `total` was made in half
before the loop, or starts as a number and `value` is half. Quiet when the total is float32 (a
float32 tensor stays float32 when half is added to it), when the type is not known, and in tests.""",
        zh="""\
`sum()` 内部以 float32 累加、只舍入一次；Python 循环则每次相加都舍入，小于总和最低位一半的数会丢失：float16 有 11 位
（累加 5000 个 1.0 得 2048），bfloat16 有 8 位（得 256）。

判定：循环中的 `total += value` 或 `total = total + value`，且 `total` 在循环前以半精度创建，或初值为普通数字而
`value` 是半精度。`total` 为 float32（加上半精度仍是 float32）、类型未知以及测试中不报告。""",
    ),
    words=("half", "float16", "bfloat16"),
    bad="""\
import torch

def average(batches):
    total = torch.zeros((), dtype=torch.float16)
    for batch in batches:
        total += batch.mean()
    return total / len(batches)
""",
    good="""\
import torch

def average(batches):
    total = torch.zeros((), dtype=torch.float32)
    for batch in batches:
        total += batch.mean().float()
    return total / len(batches)
""",
)
_PLAIN = 12
"""A name that is bound more often than this is no running sum."""
_FACTS = {"float16": ("11", "2048"), "bfloat16": ("8", "256")}


@RULE.on(ast.AugAssign)
def check_augmented(node: ast.AugAssign, scene: Scene) -> Iterator[Hit]:
    """`total += value`."""
    if isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
        yield from _judge(node, node.target, node.value, scene)


@RULE.on(ast.Assign)
def check_assigned(node: ast.Assign, scene: Scene) -> Iterator[Hit]:
    """`total = total + value`."""
    value, target = node.value, node.targets[0]
    if (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Add)
        and isinstance(target, ast.Name)
        and isinstance(value.left, ast.Name)
        and value.left.id == target.id
    ):
        yield from _judge(node, target, value.right, scene)


def _judge(node: ast.stmt, target: ast.Name, value: ast.expr, scene: Scene) -> Iterator[Hit]:
    loop = loop_around(scene, node)
    if loop is None or scene.is_test or _reads(value, target.id, scene):
        return
    first = _first_binding(target, loop, scene)
    if first is None or first.value is None:
        return
    if isinstance(first.value, ast.Constant):
        dtype = scene.dtype(value) if isinstance(first.value.value, (int, float)) else ""
    else:
        dtype = scene.dtype(first.value) if _is_zeros(first.value, scene) else ""
    if dtype in _FACTS:
        bits, stop = _FACTS[dtype]
        yield RULE.at(node, name=target.id, dtype=dtype, bits=bits, stop=stop)


def _reads(value: ast.expr, name: str, scene: Scene) -> bool:
    """Whether what is added depends on the total: a residual stream, not a sum."""
    return any(isinstance(part, ast.Name) and part.id == name for part in scene.inside(value))


def _is_zeros(value: ast.expr, scene: Scene) -> bool:
    """Whether a value starts a sum."""
    return isinstance(value, ast.Call) and scene.last_name(value.func) in (
        "zeros", "zeros_like", "new_zeros", "tensor",
    )  # fmt: skip


def _first_binding(target: ast.Name, loop: ast.AST, scene: Scene) -> Binding | None:
    """The only binding of the name outside of the loop, made before it."""
    rows = scene.bindings(target)
    if len(rows) > _PLAIN:
        return None
    outside = [row for row in rows if not scene.within(row.node, loop)]
    if len(outside) != 1 or outside[0].position > (getattr(loop, "lineno", 0), 0):
        return None
    return outside[0]
