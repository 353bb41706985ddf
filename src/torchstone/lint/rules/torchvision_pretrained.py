"""`pretrained=` of torchvision's models became `weights=`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Edit, Fix
from torchstone.core.text import Text
from torchstone.lint.knowledge.torchvision_api import WEIGHTS, backbone_of, model_of
from torchstone.lint.rule import LOW, Hit, Rule, safe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS513",
    "torchvision-pretrained",
    severity=LOW,
    aliases=("TOR201",),
    torch_from=(1, 12),
    title=Text(
        en="A torchvision model is asked for by the deprecated `pretrained=`",
        zh="用已弃用的 `pretrained=` 创建 torchvision 模型",
    ),
    say=Text(
        en="`{old}` of `{model}` is deprecated since torchvision 0.13: it became `{new}`",
        zh="`{model}` 的 `{old}` 自 torchvision 0.13 起弃用，由 `{new}` 取代",
    ),
    why=Text(
        en="`True` does not say which weights: newer ones exist for most models, and the "
        "preprocessing has to match them; torchvision announced the argument's end",
        zh="`True` 没有说明使用哪一组权重：多数模型已有更新的权重，而预处理必须与之匹配；torchvision 已宣布将"
        "移除该参数",
    ),
    suggest=Text(en="pass `{new}={weights}`", zh="传入 `{new}={weights}`"),
    page=Text(
        en="Fires on `pretrained` and `pretrained_backbone` of torchvision's model functions, by "
        "name or as the first arguments. The weights in the fix are the ones that `True` meant, "
        "so results stay the same; `False` becomes `None`. `Weights.DEFAULT` names the newest.\n\n"
        "The fix needs `torchvision` or `torchvision.models` under a name of the file, and a "
        "written `True` or `False`.",
        zh="检查 torchvision 模型函数的 `pretrained` 与 `pretrained_backbone`，包括以首位参数传入的情形。修复"
        "采用的正是 `True` 原先所指的权重，结果不变；`False` 改为 `None`。`Weights.DEFAULT` 表示最新权重。\n\n"
        "修复要求文件中已有 `torchvision` 或 `torchvision.models` 的名字，且参数为字面量 `True` 或 `False`。",
    ),
    bad="""\
import torch
from torchvision import models

net = models.resnet50(pretrained=True)
""",
    fixed="""\
@@ -4 +4 @@
-net = models.resnet50(pretrained=True)
+net = models.resnet50(weights=models.ResNet50_Weights.IMAGENET1K_V1)
""",
)


@RULE.on_call(*sorted({name.rpartition(".")[2] for name in WEIGHTS}))
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`models.resnet50(pretrained=True)`"""
    model = model_of(scene.qualified(call.func))
    if not model:
        return
    main = _old(call, "pretrained", 0, scene)
    backbone = _old(call, "pretrained_backbone", 1, scene) if backbone_of(model) else None
    if main is None and backbone is None:
        return
    old = "pretrained" if main is not None else "pretrained_backbone"
    home = _models(scene)
    shown = WEIGHTS[model] if main is not None else backbone_of(model)
    yield RULE.at(
        call,
        fix=_fix(scene, model, home, main, backbone),
        old=old,
        new="weights" if main is not None else "weights_backbone",
        model=scene.text(call.func),
        weights=_value(scene, main or backbone, shown, home) or f"{home or 'models'}.{shown}",
    )


Old = ast.keyword | ast.expr | None


def _old(call: ast.Call, name: str, place: int, scene: Scene) -> Old:
    """The keyword, or the positional argument when it is a boolean."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword
    if len(call.args) > place and isinstance(scene.literal(call.args[place]), bool):
        return call.args[place]
    return None


def _models(scene: Scene) -> str:
    """How the file can write `torchvision.models`, or ""."""
    for local, target in scene.imports.aliases.items():
        if target == "torchvision.models":
            return local
    for local, target in scene.imports.aliases.items():
        if target == "torchvision":
            return f"{local}.models"
    return ""


def _value(scene: Scene, old: Old, weights: str, home: str) -> str:
    """The new value for a written True or False, or ""."""
    given = scene.literal(old.value if isinstance(old, ast.keyword) else old)
    if given is False or (given is True and weights == "None"):
        return "None"
    return f"{home}.{weights}" if given is True and home else ""


def _fix(scene: Scene, model: str, home: str, main: Old, backbone: Old) -> Fix | None:
    edits: list[Edit] = []
    pairs = ((main, "weights", WEIGHTS[model]), (backbone, "weights_backbone", backbone_of(model)))
    for old, name, weights in pairs:
        if old is None:
            continue
        value = _value(scene, old, weights, home)
        if not value:
            return None
        edits.append(scene.replace(old, f"{name}={value}"))
    return safe(*edits)
