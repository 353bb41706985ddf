"""Layers that are dropped at random are dropped in evaluation too, unless the mode is asked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import loop_around, own_nodes
from torchstone.lint.knowledge.gating import gated_by_mode, mentions_mode
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS235",
    "ungated-layer-drop",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{test}` drops layers at random after model.eval(), too",
        zh="`{test}` 在 model.eval() 之后仍会随机丢弃层",
    ),
    why=Text(
        en="layer drop and stochastic depth are for training: in evaluation the answer then depends "
        "on chance, and layers are missing",
        zh="layer drop 和随机深度只用于训练：否则评估结果取决于随机数，而且会缺少层",
    ),
    suggest=Text(en="test `self.training` first", zh="先判断 `self.training`"),
    title=Text(
        en="Layer drop or stochastic depth is not gated by self.training",
        zh="layer drop 或随机深度没有以 self.training 为条件",
    ),
    page=Text(
        en="Fires in `forward` of an nn.Module where nothing asks for the mode:\n\n"
        "- a condition that compares a random number with a rate named after dropping or survival, or "
        "that leaves out a layer in a loop over the module's own ModuleList;\n"
        "- a factor that a random number chooses (MEDIUM);\n"
        "- a value that is divided by a share and multiplied by a random mask drawn with that share.",
        zh="在 nn.Module 的 `forward` 中没有任何地方判断模式时报告：\n\n"
        "- 条件把随机数与名称表示丢弃率或存活率的值比较，或在遍历模块自身 ModuleList 的循环中跳过某一层；\n"
        "- 由随机数选择的系数（MEDIUM）；\n"
        "- 值除以某个比例，再乘以按该比例抽取的随机掩码。",
    ),
    bad="""\
import random
import torch
from torch import nn

class Encoder(nn.Module):
    def forward(self, x):
        for layer in self.layers:
            if random.random() < self.layerdrop:
                continue
            x = layer(x)
        return x
""",
    fixed="""\
@@ -8 +8 @@
-            if random.random() < self.layerdrop:
+            if self.training and random.random() < self.layerdrop:
""",
    words=("random", "rand", "uniform"),
)
_RATE = pattern(
    r"layer_?drop|drop_?(?:path|layer|connect|depth)|surviv|stochastic_?depth|skip_prob", re.I
)
_RANDOM = frozenset(("random", "rand", "uniform", "rand_like"))


@RULE.on(ast.If)
def check(node: ast.If, scene: Scene) -> Iterator[Hit]:
    if not isinstance(node.test, (ast.Compare, ast.BoolOp)) or scene.forward_of(node) is None:
        return
    compare = next((p for p in scene.inside(node.test) if isinstance(p, ast.Compare)), None)
    if compare is None or len(compare.ops) != 1:
        return
    sides = (compare.left, compare.comparators[0])
    if not any(_is_random(scene, side) for side in sides):
        return
    rate = next((side for side in sides if _RATE.search(scene.last_name(side))), None)
    if rate is None and _skips_layer(scene, node):
        rate = next((side for side in sides if not _is_random(scene, side)), None)
    if rate is None:
        return
    if gated_by_mode(scene, node.body[0], rate) or gated_by_mode(scene, node, rate):
        return
    yield RULE.at(node, test=scene.brief(node.test), fix=_fix(scene, node))


def _skips_layer(scene: Scene, node: ast.If) -> bool:
    """Whether the condition leaves out a layer of a loop over the module's own layers."""
    loop = loop_around(scene, node)
    if not isinstance(loop, ast.For) or not isinstance(node.body[-1], ast.Continue):
        return False
    owner = scene.class_of(node)
    return owner is not None and any(
        isinstance(item, ast.Attribute)
        and scene.dotted(item.value) == "self"
        and any(
            isinstance(value, ast.Call) and scene.last_name(value.func) == "ModuleList"
            for value in scene.attribute_values(owner, item.attr)
        )
        for item in scene.inside(loop.iter)
    )


@RULE.on(ast.IfExp)
def check_scale(node: ast.IfExp, scene: Scene) -> Iterator[Hit]:
    """`alpha = 1.0 if torch.rand(()).item() <= 0.9 else 0.1` … `x + alpha * layer(x)`"""
    test, up = node.test, scene.parent(node)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(up, ast.Assign):
        return
    if not any(_is_random(scene, side) for side in (test.left, test.comparators[0])):
        return
    function = scene.function(node)
    if function is None or scene.forward_of(node) is None or mentions_mode(scene, function):
        return
    names = {target.id for target in up.targets if isinstance(target, ast.Name)}
    if any(
        isinstance(item, ast.BinOp)
        and isinstance(item.op, ast.Mult)
        and any(isinstance(side, ast.Name) and side.id in names for side in (item.left, item.right))
        for item in own_nodes(function)
    ):
        # what is scaled at random may also be meant as noise
        yield RULE.at(node, severity=MEDIUM, test=scene.brief(test))


@RULE.on(ast.FunctionDef)
def check_mask(function: ast.FunctionDef, scene: Scene) -> Iterator[Hit]:
    """`x / keep * mask` with a random mask: dropout or stochastic depth written by hand"""
    owner = scene.parent(function)
    if function.name != "forward" or not isinstance(owner, ast.ClassDef):
        return
    drawn = (call for name in _RANDOM for call in scene.calls.get(name, ()))
    if not any(scene.within(call, function) for call in drawn):
        return
    if mentions_mode(scene, function) or not scene.is_module_class(owner):
        return
    for node in own_nodes(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
            rate = _kept_share(scene, node)
            if rate is not None:
                yield RULE.at(node, test=scene.brief(node))
                return


def _kept_share(scene: Scene, node: ast.BinOp) -> ast.expr | None:
    """What a masked value is divided by, when the mask was drawn with that very share."""
    factors, divisors = _factors(node)
    for divisor in divisors:
        name = scene.dotted(divisor)
        for factor in factors if name else ():
            value = scene.value(factor) if isinstance(factor, ast.Name) else factor
            if value is not None and _is_random(scene, value):
                if any(scene.dotted(part) == name for part in scene.inside(value)):
                    return divisor
    return None


def _factors(node: ast.expr) -> tuple[list[ast.expr], list[ast.expr]]:
    """What an expression multiplies, and what it divides by."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _factors(node.left), _factors(node.right)
        return [*left[0], *right[0]], [*left[1], *right[1]]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        top = _factors(node.left)
        return top[0], [*top[1], node.right]
    return [node], []


def _is_random(scene: Scene, side: ast.expr) -> bool:
    """Whether a side is a random number, drawn here or just before."""
    value = scene.value(side) if isinstance(side, ast.Name) else side
    return value is not None and any(
        isinstance(part, ast.Call) and scene.last_name(part.func) in _RANDOM
        for part in scene.inside(value)
    )


def _fix(scene: Scene, node: ast.If) -> Fix | None:
    """Ask for the mode first where the condition drops the layer."""
    leaves = isinstance(node.body[-1], (ast.Continue, ast.Return)) and not node.orelse
    if not leaves or not isinstance(node.test, ast.Compare):
        return None
    return safe(scene.insert_before(node.test, "self.training and "))
