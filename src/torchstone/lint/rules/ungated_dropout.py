"""Functional dropout drops in evaluation too unless it is told the mode."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.rates import is_never_set
from torchstone.lint.knowledge.gating import gated_by_mode
from torchstone.lint.rule import HIGH, LIKELY, POSSIBLE, Hit, Rule, safe
from torchstone.sources.scene import Scene

_ON_PURPOSE = pattern(r"prenet|mc_?drop|monte_?carlo|bayes", re.IGNORECASE)
_NAMES = frozenset(("dropout", "dropout1d", "dropout2d", "dropout3d"))

RULE = Rule(
    "TS206",
    "ungated-dropout",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{call}` also drops values after model.eval()",
        zh="`{call}` 在 model.eval() 之后仍会随机丢弃",
    ),
    why=Text(
        en="F.{name} has training=True by default and knows nothing of the module's mode: "
        "predictions become random and validation scores too low",
        zh="F.{name} 的 training 默认为 True，并不知道模块所处的模式：预测结果带随机性，验证指标偏低",
    ),
    suggest=Text(
        en="pass training=self.training, or use an nn.Dropout module",
        zh="传入 training=self.training，或改用 nn.Dropout 模块",
    ),
    title=Text(
        en="Functional dropout is not tied to the module's training mode and drops values in "
        "evaluation too",
        zh="函数式 dropout 没有与模块的训练模式绑定，评估时仍会随机丢弃",
    ),
    page=Text(
        en="`F.dropout`, `dropout1d`, `dropout2d` and `dropout3d` default to `training=True` (only "
        "the alpha variants default to False). Fires inside methods of an nn.Module when neither "
        "`training` is given nor the call or its `p` depends on `training`.\n\n"
        "- Quiet with `training=` of any kind (an explicit True is Monte Carlo dropout on purpose), "
        "with `p=0`, under `if self.training`, when `p` is `... if self.training else 0.0`, and in "
        "classes that drop on purpose by their name (a Tacotron Prenet, MCDropout).\n"
        "- In plain functions, whose callers may pass `p=0` in evaluation, the confidence is "
        "`possible`.",
        zh="`F.dropout`、`dropout1d`、`dropout2d`、`dropout3d` 默认 `training=True`（只有 alpha 系列默认 "
        "False）。在 nn.Module 的方法里，若没有传 `training`，且调用本身或 `p` 都不依赖 `training`，则报告。\n\n"
        "- 只要显式写了 `training=`（写 True 视为有意的蒙特卡洛 dropout）、`p=0`、位于 `if self.training` 之下，"
        "`p` 形如 `... if self.training else 0.0`，或类名表明有意如此（Tacotron 的 Prenet、MCDropout），都不报告。\n"
        "- 在普通函数里，调用方可能在评估时传 `p=0`，置信度为 `possible`（可能）。",
    ),
    bad="""\
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        x = F.relu(self.fc(x))
        x = F.dropout(x, p=0.5)
        return x
""",
    fixed="""\
@@ -11 +11 @@
-        x = F.dropout(x, p=0.5)
+        x = F.dropout(x, p=0.5, training=self.training)
""",
)


@RULE.on_call(*sorted(_NAMES))
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    full = scene.qualified(call.func)
    name = full.rpartition(".")[2]
    if full != f"torch.nn.functional.{name}" or name not in _NAMES or scene.has_star(call):
        return
    if scene.argument(call, 2, "training") is not None:
        return
    rate = scene.argument(call, 1, "p")
    if scene.literal(rate) == 0 or gated_by_mode(scene, call, rate) or is_never_set(scene, rate):
        return
    owner = scene.class_of(call)
    function = scene.function(call)
    if owner is not None and _ON_PURPOSE.search(owner.name):
        return
    bound = (
        owner is not None
        and function is not None
        and scene.parent(function) is owner
        and [item.arg for item in function.args.args[:1]] == ["self"]
        and scene.is_module_class(owner)
        and not _switched(scene, call)
        and not _from_caller(scene, rate)
    )
    yield RULE.at(
        call,
        call=scene.brief(call),
        name=name,
        confidence=LIKELY if bound else POSSIBLE,
        fix=safe(scene.add_keyword(call, "training=self.training")) if bound else None,
    )


def _from_caller(scene: Scene, rate: ast.expr | None) -> bool:
    """Whether the rate is a parameter: who calls may pass 0 outside of training."""
    if not isinstance(rate, ast.Name):
        return False
    rows = scene.bindings(rate)
    return bool(rows) and any(row.how == "parameter" for row in rows)


def _switched(scene: Scene, call: ast.Call) -> bool:
    """Whether a plain flag decides (`if rate > 0 and dropout_switch`): the caller may know."""
    for up in scene.ancestors(call):
        if isinstance(up, ast.If):
            parts = up.test.values if isinstance(up.test, ast.BoolOp) else [up.test]
            if any(isinstance(part, (ast.Name, ast.Attribute)) for part in parts):
                return True
    return False
