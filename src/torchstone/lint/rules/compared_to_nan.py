"""Nothing is equal to NaN, not even NaN."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import CERTAIN, HIGH, Hit, Rule
from torchstone.sources.scene import Scene

_NANS = frozenset(("torch.nan", "numpy.nan", "numpy.NaN", "numpy.NAN", "math.nan"))

RULE = Rule(
    "TS227",
    "compared-to-nan",
    severity=HIGH,
    confidence=CERTAIN,
    say=Text(en="`{text}` is always {answer}", zh="`{text}` 恒为 {answer}"),
    why=Text(
        en="NaN differs from every value, itself included: this check never catches a NaN",
        zh="NaN 与任何值都不相等，包括它自己：这个判断永远捕捉不到 NaN",
    ),
    suggest=Text(
        en="use torch.isnan(x) for a tensor, math.isnan(x) for a number",
        zh="张量用 torch.isnan(x)，数值用 math.isnan(x)",
    ),
    title=Text(
        en="A comparison with NaN by == or != always gives the same answer",
        zh="用 == 或 != 与 NaN 比较，结果恒定不变",
    ),
    page=Text(
        en='Fires for `==` and `!=` against `float("nan")`, `torch.nan`, `np.nan` and `math.nan`.\n\n'
        "- `is torch.nan` is quiet: it asks for one particular object, which works where that object "
        "was put there as a mark; a computed NaN is never it.",
        zh='对 `float("nan")`、`torch.nan`、`np.nan`、`math.nan` 使用 `==`、`!=` 时报告。\n\n'
        "- `is torch.nan` 不报告：它问的是某一个特定对象，用作标记时有效；计算得到的 NaN 不会是它。",
    ),
    bad="""\
import torch

def guard(loss):
    if loss == float("nan"):
        raise RuntimeError("diverged")
""",
    good="""\
import torch

def guard(loss):
    if torch.isnan(loss):
        raise RuntimeError("diverged")
""",
    words=("nan", "NaN", "NAN"),
)


@RULE.on(ast.Compare)
def check(node: ast.Compare, scene: Scene) -> Iterator[Hit]:
    if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        return
    if any(_is_nan(scene, side) for side in (node.left, node.comparators[0])):
        answer = "False" if isinstance(node.ops[0], ast.Eq) else "True"
        yield RULE.at(node, text=scene.brief(node), answer=answer)


def _is_nan(scene: Scene, node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and scene.last_name(node.func) == "float" and len(node.args) == 1:
        value = scene.literal(node.args[0])
        return isinstance(value, str) and value.strip().lower().lstrip("+-") == "nan"
    return scene.qualified(node) in _NANS
