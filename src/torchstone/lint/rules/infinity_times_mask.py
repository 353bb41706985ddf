"""Infinity times a mask is NaN wherever the mask is 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS254",
    "infinity-times-mask",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{text}` is NaN where the other factor is 0", zh="`{text}` 在另一个因子为 0 处得到 NaN"
    ),
    why=Text(
        en="0 times infinity is NaN, and a softmax or sum over it becomes NaN as a whole",
        zh="0 乘以无穷为 NaN，对其求 softmax 或求和会整体变成 NaN",
    ),
    suggest=Text(
        en="use `masked_fill(mask, float('-inf'))`, or a large finite number",
        zh="改用 `masked_fill(mask, float('-inf'))`，或一个很大的有限数",
    ),
    title=Text(en="A mask is multiplied by infinity", zh="用无穷大乘以掩码"),
    page=Text(
        en="Reported when the other factor is a mask: a comparison, or a name or expression that speaks of one.",
        zh="当另一个因子是掩码（比较，或名字、表达式中含有 mask）时报告。",
    ),
    words=("inf", "Inf"),
    needs=("torch",),
    bad="""\
import torch

def choose(q, mask):
    return (q - float("inf") * mask).argmax(-1)
""",
    good="""\
import torch

def choose(q, mask):
    return q.masked_fill(mask.bool(), float("-inf")).argmax(-1)
""",
)
_INFINITIES = ("math.inf", "numpy.inf", "torch.inf", "numpy.Inf")


@RULE.on(ast.BinOp)
def check(node: ast.BinOp, scene: Scene) -> Iterator[Hit]:
    """`float("inf") * mask`"""
    if not isinstance(node.op, ast.Mult):
        return
    for one, other in ((node.left, node.right), (node.right, node.left)):
        if _is_infinite(scene, one) and _is_mask(scene, other):
            yield RULE.at(node, text=scene.brief(node))
            return


def _is_infinite(scene: Scene, node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_infinite(scene, node.operand)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float":
        given = scene.literal(node.args[0]) if node.args else ""
        return isinstance(given, str) and given.strip("+-").lower() in ("inf", "infinity")
    return scene.qualified(node) in _INFINITIES


def _is_mask(scene: Scene, node: ast.expr) -> bool:
    return any(
        isinstance(part, ast.Compare) or "mask" in scene.last_name(part).lower()
        for part in scene.inside(node)
    )
