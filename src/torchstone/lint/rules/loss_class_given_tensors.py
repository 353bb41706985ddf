"""A loss class takes options; the tensors go to the object it makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.layers import nn_class
from torchstone.lint.rule import CERTAIN, HIGH, Hit, Rule, safe
from torchstone.sources.scene import Scene

_CLASSES = ("CrossEntropyLoss", "NLLLoss", "MSELoss", "L1Loss", "BCELoss", "BCEWithLogitsLoss",
            "KLDivLoss", "SmoothL1Loss")  # fmt: skip

RULE = Rule(
    "TS224",
    "loss-class-given-tensors",
    severity=HIGH,
    confidence=CERTAIN,
    say=Text(
        en="`{call}` passes the tensors to the constructor of the loss",
        zh="`{call}` 把张量传给了损失类的构造函数",
    ),
    why=Text(
        en="nn.{loss} takes options (weight, size_average, ...): this raises 'Boolean value of "
        "Tensor with more than one value is ambiguous', or gives a module where a loss is expected",
        zh="nn.{loss} 的构造函数接收的是选项（weight、size_average 等）：这会报 'Boolean value of Tensor "
        "with more than one value is ambiguous'，或得到一个模块而不是损失值",
    ),
    suggest=Text(
        en="make the object first, then call it: `nn.{loss}()(output, target)`",
        zh="先创建对象再调用：`nn.{loss}()(output, target)`",
    ),
    title=Text(
        en="A loss class is called like a function and takes the tensors for its options",
        zh="把损失类当作函数调用，张量被当成了构造参数",
    ),
    page=Text(
        en="Fires when one of torch's loss classes gets two positional arguments that are neither "
        "constants nor None: its second option has been a deprecated flag since torch 0.4.",
        zh="当 torch 的损失类收到两个既非常量也非 None 的位置参数时报告：它的第二个选项自 torch 0.4 起就是已弃用的标志。",
    ),
    bad="""\
import torch.nn as nn

def loss_of(model, x, y):
    return nn.CrossEntropyLoss(model(x), y)
""",
    fixed="""\
@@ -4 +4 @@
-    return nn.CrossEntropyLoss(model(x), y)
+    return nn.CrossEntropyLoss()(model(x), y)
""",
)


# what the constructors themselves take, in the order of old and new versions
_OPTIONS = ("weight", "size_average", "reduce", "reduction", "ignore_index", "pos_weight", "beta",
            "label_smoothing", "log_target")  # fmt: skip


def _names_options(scene: Scene, call: ast.Call) -> bool:
    """Whether an argument goes by the name of an option: `NLLLoss(weight, size_average)`."""
    return any(
        any(word in scene.last_name(item).lower() for word in _OPTIONS) for item in call.args[:2]
    )


@RULE.on_call(*_CLASSES)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if len(call.args) < 2 or scene.has_star(call):
        return
    if any(isinstance(item, (ast.Constant, ast.Starred)) for item in call.args[:2]):
        return
    if _names_options(scene, call):
        return
    name = nn_class(scene, call.func)
    second = scene.literal(call.args[1])
    if name not in _CLASSES or isinstance(second, (bool, type(None))):
        return
    fix = None
    if len(call.args) == 2 and not call.keywords:
        fix = safe(scene.insert_after(call.func, "()"))
    yield RULE.at(call, call=scene.brief(call), loss=name, fix=fix)
