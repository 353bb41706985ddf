"""`state_dict(x)` where `load_state_dict(x)` was meant loads nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS244",
    "state-given-to-state-dict",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{call}` loads nothing: `state_dict` only gives the state",
        zh="`{call}` 不会加载任何内容：`state_dict` 只返回状态",
    ),
    why=Text(en="the model goes on with the weights that it has", zh="模型会继续使用原有的权重"),
    suggest=Text(en="call `load_state_dict`", zh="改为调用 `load_state_dict`"),
    title=Text(
        en="A state is given to state_dict() instead of load_state_dict()",
        zh="把状态传给了 state_dict()，而不是 load_state_dict()",
    ),
    page=Text(
        en="Reported for a `state_dict` with one argument by position whose result nobody uses.",
        zh="当 `state_dict` 按位置得到一个参数、且结果未被使用时报告。",
    ),
    bad="""\
import torch

def resume(model, path):
    model.state_dict(torch.load(path, weights_only=True, map_location="cpu"))
""",
    good="""\
import torch

def resume(model, path):
    model.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
""",
)


@RULE.on_call("state_dict")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`model.state_dict(state)` as a statement."""
    if isinstance(scene.parent(call), ast.Expr) and len(call.args) == 1 and not call.keywords:
        if scene.receiver(call) is not None and not isinstance(call.args[0], ast.Starred):
            yield RULE.at(call, call=scene.brief(call))
