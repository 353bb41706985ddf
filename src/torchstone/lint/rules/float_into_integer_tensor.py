"""An integer tensor cannot hold a fraction."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.dtypes import integer_dtype
from torchstone.lint.knowledge.numbers import number
from torchstone.lint.rule import CERTAIN, HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene
from torchstone.sources.values import count_before

RULE = Rule(
    "TS127",
    "float-into-integer-tensor",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{place}` writes a fraction into the {dtype} tensor `{name}`",
        zh="`{place}` 把小数写入 {dtype} 张量 `{name}`",
    ),
    why=Text(
        en="the value is cut off to a whole number without a word: 0.5 becomes 0",
        zh="数值会被悄悄截断为整数：0.5 变成 0",
    ),
    suggest=Text(
        en="make `{name}` floating point: give it a dtype, or numbers with a decimal point",
        zh="让 `{name}` 成为浮点张量：指定 dtype，或把数字写成小数",
    ),
    title=Text(
        en="A fraction written in place into an integer tensor is cut off",
        zh="向整数张量原地写入的小数会被截断",
    ),
    page=Text(
        en="""\
`torch.tensor([0, 0])`, `torch.full((2,), 0)` and `torch.arange(2)` are int64. Assigning by index, `fill_` and
`masked_fill` cut a fraction off silently; `x /= 2`, and `+=`, `-=`, `*=` with a fraction raise
`RuntimeError: result type Float can't be cast to the desired output type Long`.

Reported where the tensor is plainly an integer one of torch (a literal list of whole numbers,
`arange`, `randint`, `argmax`, `.long()`, an integer dtype) and the number is written down and not
whole; `/=` with anything. Quiet for booleans, for types that are not known, and in tests.""",
        zh="""\
`torch.tensor([0, 0])`、`torch.full((2,), 0)`、`torch.arange(2)` 都是 int64。按下标赋值、`fill_` 和 `masked_fill` 会悄悄
截掉小数部分；`x /= 2` 以及用小数做 `+=`、`-=`、`*=` 会抛出 `RuntimeError: result type Float can't be cast to the
desired output type Long`。

仅当张量明显是 torch 的整数类型（整数字面量列表、`arange`、`randint`、`argmax`、`.long()`、整数 dtype），且写明的数字
不是整数时报告；`/=` 则不论除数。布尔张量、类型未知以及测试中不报告。""",
    ),
    words=("tensor", "arange", "randint", "long", "argmax", "int64", "int32"),
    bad="""\
import torch

def weights():
    w = torch.tensor([1, 1, 1])
    w[0] = 0.5
    return w
""",
    good="""\
@@ -4 +4 @@
-    w = torch.tensor([1, 1, 1])
+    w = torch.tensor([1.0, 1.0, 1.0])
""",
)
_RAISES = Text(
    en="this raises `RuntimeError: result type Float can't be cast to the desired output type Long`",
    zh="此处会抛出 `RuntimeError: result type Float can't be cast to the desired output type Long`",
)
_FILLS = {"fill_": 0, "masked_fill": 1, "masked_fill_": 1, "index_fill_": 2, "index_fill": 2}


@RULE.on(ast.AugAssign)
def check_augmented(node: ast.AugAssign, scene: Scene) -> Iterator[Hit]:
    """`x /= y`, `x *= 0.5`."""
    if not isinstance(node.target, ast.Name):
        return
    if not isinstance(node.op, ast.Div) and not (
        isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)) and _is_fraction(node.value, scene)
    ):
        return
    dtype = integer_dtype(scene, _value_before(node, node.target, scene))
    if dtype not in ("", "bool") and not scene.is_test:
        yield RULE.at(
            node,
            confidence=CERTAIN,
            why=_RAISES,
            place=scene.brief(node),
            dtype=dtype,
            name=node.target.id,
        )


@RULE.on(ast.Assign)
def check_assigned(node: ast.Assign, scene: Scene) -> Iterator[Hit]:
    """`x[i] = 0.5`."""
    target = node.targets[0]
    if not isinstance(target, ast.Subscript) or not _is_fraction(node.value, scene):
        return
    dtype = integer_dtype(scene, target.value)
    if dtype not in ("", "bool") and not scene.is_test:
        yield RULE.at(node, place=scene.brief(node), dtype=dtype, name=scene.brief(target.value))


@RULE.on_call(*_FILLS)
def check_fill(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`x.masked_fill(mask, 0.5)`."""
    name = scene.method(call)
    if not name or not _is_fraction(scene.argument(call, _FILLS[name], "value"), scene):
        return
    tensor = scene.receiver(call)
    dtype = integer_dtype(scene, tensor)
    if tensor is not None and dtype not in ("", "bool") and not scene.is_test:
        yield RULE.at(call, place=scene.brief(call), dtype=dtype, name=scene.brief(tensor))


def _is_fraction(node: ast.expr | None, scene: Scene) -> bool:
    value = number(scene, node) if isinstance(node, (ast.Constant, ast.UnaryOp)) else None
    return value is not None and math.isfinite(value) and value != int(value)


def _value_before(node: ast.AugAssign, target: ast.Name, scene: Scene) -> ast.expr | None:
    """What the name was last bound to, in the same block or around it."""
    rows = scene.bindings(target)
    count = count_before(rows, node)
    if not count or rows[count - 1].how != "assign":
        return None
    row = rows[count - 1]
    around = set(scene.ancestors(node))
    conditional = (ast.If, ast.Try, ast.For, ast.While)
    if any(isinstance(up, conditional) and up not in around for up in scene.ancestors(row.node)):
        return None
    return row.value
