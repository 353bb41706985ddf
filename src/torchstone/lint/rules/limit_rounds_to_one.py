"""`1 - 1e-10` is 1 in float32, so a limit made of it limits nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS247",
    "limit-rounds-to-one",
    torch_from=(0, 1),
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(en="`{text}` is exactly 1 in float32", zh="`{text}` 在 float32 中恰好等于 1"),
    why=Text(
        en="below 6e-8 the difference is rounded away: log(1 - p) of the limited value is still -inf",
        zh="小于 6e-8 的差会被舍入掉：限幅后的值取 log(1 - p) 仍为 -inf",
    ),
    suggest=Text(en="use 1e-6, or work with logits", zh="改用 1e-6，或直接使用 logits"),
    title=Text(
        en="A limit such as 1 - 1e-10 is 1 in float32",
        zh="形如 1 - 1e-10 的上限在 float32 中等于 1",
    ),
    page=Text(
        en="Reported for the upper limit of `clamp`, `clip` and `clamp_` of tensors. Quiet in functions that work in float64.",
        zh="检查张量 `clamp`、`clip`、`clamp_` 的上限。在 float64 中计算的函数不报告。",
    ),
    words=("torch",),
    bad="""\
import torch

def loss_of(p, y):
    p = torch.clamp(p, 1e-10, 1 - 1e-10)
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()
""",
    good="""\
import torch

def loss_of(p, y):
    p = torch.clamp(p, 1e-6, 1 - 1e-6)
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()
""",
)
_HALF_STEP = 2.0**-25  # half of the distance from 1 to the next smaller float32


@RULE.on_call("clamp", "clamp_", "clip", "clip_")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.clamp(p, 1e-10, 1 - 1e-10)`"""
    full = scene.qualified(call.func)
    if full and not full.startswith("torch."):
        return
    given = scene.argument(call, 2 if full else 1, "max")
    if given is None or not isinstance(given, ast.BinOp) or not isinstance(given.op, ast.Sub):
        return
    small = _number(scene, given.right)
    function = scene.function(call)
    wide = function is not None and (
        "double" in scene.text(function) or "float64" in scene.text(function)
    )
    if (
        _number(scene, given.left) == 1
        and small is not None
        and 0 < small < _HALF_STEP
        and not wide
    ):
        yield RULE.at(given, text=scene.brief(given))


def _number(scene: Scene, node: ast.expr) -> float | None:
    """A written number, or a name or default that stands for one."""
    value = scene.literal(node)
    if isinstance(node, ast.Name) and not isinstance(value, (int, float)):
        value = scene.literal(_default(scene, node) or scene.value(node))
    return float(value) if isinstance(value, (int, float)) else None


def _default(scene: Scene, name: ast.Name) -> ast.expr | None:
    """The default of a parameter."""
    function = scene.function(name)
    rows = scene.bindings(name)
    if function is None or len(rows) != 1 or rows[0].how != "parameter":
        return None
    given = function.args
    pairs = zip(reversed((*given.posonlyargs, *given.args)), reversed(given.defaults), strict=False)
    return next((value for row, value in pairs if row.arg == name.id), None)
