"""Dividing whole numbers gives floating point, which is no index."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import reads_of
from torchstone.lint.knowledge.dtypes import integer_dtype
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS119",
    "true-divided-index",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{division}` is floating point, but is used as an index",
        zh="`{division}` 的结果是浮点数，却被用作索引",
    ),
    why=Text(
        en="`/` between whole numbers has been true division since torch 1.5: indexing with the "
        "result raises `IndexError: tensors used as indices must be long, int, byte or bool`",
        zh="自 torch 1.5 起整数张量的 `/` 是真除法：用其结果索引会抛出 `IndexError: tensors used as indices "
        "must be long, int, byte or bool`",
    ),
    suggest=Text(
        en='use `//`, or torch.div(…, rounding_mode="floor")',
        zh='改用 `//`，或 torch.div(…, rounding_mode="floor")',
    ),
    title=Text(
        en="The result of a true division is floating point but is used as an index",
        zh="真除法的结果是浮点数，却被用作索引",
    ),
    page=Text(
        en="""\
Beam search code from before torch 1.5 divides a flat index by the width to get a row:
`beam = best / vocabulary`. Today that is float32; above 2^24 it is not even a whole number. `//`
floors (since torch 1.13 also for negative numbers; earlier it rounded towards zero).

Reported when an index (argmax, nonzero, arange, `.long()` and the like, or the second output of
topk, sort, max and min over a dimension) is divided with `/` or `torch.div` without `rounding_mode`, and the result goes into a subscript, `gather`, `index_select`,
`take` or `embedding` without a cast. Quiet when `.long()` or `.int()` follows, and in tests.""",
        zh="""\
torch 1.5 之前的束搜索代码常用平铺下标除以宽度得到行号：`beam = best / vocabulary`。如今其结果是 float32，超过 2^24
时甚至不再是整数。`//` 为向下取整（自 torch 1.13 起对负数也是如此，此前向零取整）。

判定：下标（argmax、nonzero、arange、`.long()` 等，或 topk、sort 及按维 max、min 的第二个输出）用 `/` 或不带 `rounding_mode` 的 `torch.div` 相除，其结果未经转换就
用于下标、`gather`、`index_select`、`take` 或 `embedding`。其后有 `.long()` 或 `.int()`，以及测试中不报告。""",
    ),
    words=(
        *("argmax", "nonzero", "arange", "long", "argsort", "randint"),
        *("topk", "kthvalue", "sort", "max", "min"),
    ),
    bad="""\
import torch

def rows(scores, table):
    best = torch.argmax(scores)
    return table[best / 8]
""",
    fixed="""\
@@ -5 +5 @@
-    return table[best / 8]
+    return table[best // 8]
""",
)
_TAKES_INDEX = {"gather": 1, "index_select": 1, "take": 0, "take_along_dim": 0}


@RULE.on(ast.BinOp)
def check_operator(division: ast.BinOp, scene: Scene) -> Iterator[Hit]:
    """`a / b`."""
    if not isinstance(division.op, ast.Div):
        return
    if not isinstance(scene.parent(division), (ast.Subscript, ast.Tuple, ast.Call, ast.Assign)):
        return
    if integer_dtype(scene, division.left) in ("", "bool") or not _is_index(division, scene):
        return
    left, right = scene.text(division.left), scene.text(division.right)
    plain = scene.text(division) == f"{left} / {right}"
    fix = safe(scene.replace(division, f"{left} // {right}")) if plain else None
    yield RULE.at(division, fix=fix, division=scene.brief(division))


@RULE.on_call("div", "true_divide")
def check_function(division: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.div(a, b)`."""
    if not scene.qualified(division.func).startswith("torch.") or len(division.args) != 2:
        return
    if scene.keyword(division, "rounding_mode") is not None:
        return
    if integer_dtype(scene, division.args[0]) in ("", "bool") or not _is_index(division, scene):
        return
    named = scene.last_name(division.func) == "div"
    fix = safe(scene.add_keyword(division, 'rounding_mode="floor"')) if named else None
    yield RULE.at(division, fix=fix, division=scene.brief(division))


_RESHAPES = frozenset("unsqueeze squeeze view reshape expand flatten repeat contiguous".split())


def _is_index(division: ast.expr, scene: Scene) -> bool:
    """Whether the result, or the name it is bound to, is used as an index."""
    if scene.is_test:
        return False
    if _indexes(division, scene):
        return True
    up = scene.parent(division)
    if not isinstance(up, ast.Assign):
        return False
    targets = [target for target in up.targets if isinstance(target, ast.Name)]
    return any(_indexes(read, scene) for target in targets for read in reads_of(scene, target))


def _indexes(node: ast.expr, scene: Scene) -> bool:
    up = scene.parent(node)
    if isinstance(up, ast.Attribute) and up.attr in _RESHAPES:
        call = scene.parent(up)
        return isinstance(call, ast.Call) and call.func is up and _indexes(call, scene)
    if isinstance(up, ast.Tuple):
        return isinstance(outer := scene.parent(up), ast.Subscript) and outer.slice is up
    if isinstance(up, ast.Subscript):
        return up.slice is node
    if not isinstance(up, ast.Call):
        return False
    if scene.qualified(up.func) == "torch.nn.functional.embedding":
        return scene.argument(up, 0, "input") is node
    if scene.qualified(up.func) in ("torch.gather", "torch.index_select"):
        return scene.argument(up, 2, "index") is node
    place = _TAKES_INDEX.get(scene.method(up))
    return place is not None and scene.argument(up, place, "index") is node
