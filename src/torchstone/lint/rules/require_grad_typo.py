"""`require_grad` is not an attribute of tensors: setting it does nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS508",
    "require-grad-typo",
    in_every_torch=True,
    severity=HIGH,
    confidence=LIKELY,
    aliases=("TOR002",),
    title=Text(
        en="The misspelt `require_grad` is set, which changes nothing",
        zh="误写为 `require_grad`，设置它不起任何作用",
    ),
    say=Text(
        en="`{target}` sets an attribute that tensors do not have",
        zh="`{target}` 设置了张量并不存在的属性",
    ),
    why=Text(
        en="Python makes a new attribute without a word: the parameters meant to be frozen keep "
        "training, or those meant to train never do",
        zh="Python 会默默新建一个属性：本想冻结的参数仍在训练，或本想训练的参数始终没有更新",
    ),
    suggest=Text(en="write `requires_grad`", zh="改为 `requires_grad`"),
    page=Text(
        en="Fires on assignments to an attribute called `require_grad`. Quiet when the file also "
        "reads such an attribute, or sets it on `self`: then it is one of the project's own.",
        zh="检查对名为 `require_grad` 的属性的赋值。若文件中还读取该属性，或赋值对象是 `self`，说明它是项目"
        "自有的属性，不报告。",
    ),
    words=("require_grad",),
    bad="""\
import torch

def freeze(model):
    for p in model.parameters():
        p.require_grad = False
""",
    fixed="""\
@@ -5 +5 @@
-        p.require_grad = False
+        p.requires_grad = False
""",
)


@RULE.on(ast.Attribute)
def check(node: ast.Attribute, scene: Scene) -> Iterator[Hit]:
    """`p.require_grad = False`"""
    if node.attr != "require_grad" or not isinstance(node.ctx, ast.Store):
        return
    if isinstance(node.value, ast.Name) and node.value.id == "self":
        return
    if any(
        other.attr == "require_grad" and isinstance(other.ctx, ast.Load)
        for other in scene.all(ast.Attribute)
    ):
        return
    fixed = f"{scene.text(node.value)}.requires_grad"
    yield RULE.at(node, fix=safe(scene.replace(node, fixed)), target=scene.brief(node))
