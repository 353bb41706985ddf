"""Softmax without `dim` chooses the dimension by the rank of its input."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS248",
    "softmax-without-dim",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{call}` chooses its dimension by the rank of its input",
        zh="`{call}` 会按输入的维数自行选择维度",
    ),
    why=Text(
        en="with one or three dimensions it is the first one: the samples of a batch are normalised together",
        zh="输入为一维或三维时选择第一维：批内的样本会被放在一起归一化",
    ),
    suggest=Text(
        en="give `dim=-1`, or the dimension of the classes", zh="给出 `dim=-1`，或类别所在的维度"
    ),
    title=Text(en="Softmax is called without dim", zh="softmax 没有指定 dim"),
    page=Text(
        en="torch has warned about this since 0.4 and chooses dimension 0 for inputs with 0, 1 or 3 dimensions, 1 for others.",
        zh="自 0.4 起 torch 会对此给出警告：输入为 0、1、3 维时选择第 0 维，其他情况选择第 1 维。",
    ),
    bad="""\
import torch.nn.functional as F

def attend(scores, values):
    return F.softmax(scores) @ values
""",
    good="""\
import torch.nn.functional as F

def attend(scores, values):
    return F.softmax(scores, dim=-1) @ values
""",
)
_FUNCTIONS = tuple(f"torch.nn.functional.{name}" for name in ("softmax", "log_softmax", "softmin"))
_CLASSES = ("torch.nn.Softmax", "torch.nn.LogSoftmax", "torch.nn.Softmin")


@RULE.on_call("softmax", "log_softmax", "softmin", "Softmax", "LogSoftmax", "Softmin")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`F.softmax(x)`"""
    full = scene.qualified(call.func)
    place = 1 if full in _FUNCTIONS else 0 if full in _CLASSES else None
    if place is None or scene.has_star(call) or (place and not call.args):
        return
    if scene.argument(call, place, "dim") is None:
        yield RULE.at(call, call=scene.brief(call))
