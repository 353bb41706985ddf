"""Cross entropy takes logits: it applies log_softmax itself."""

from __future__ import annotations

from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, LOW, MEDIUM, Hit, Rule
from torchstone.lint.values.losses import loss_calls
from torchstone.sources.scene import Scene

LOSSES = frozenset(("CrossEntropyLoss", "cross_entropy"))

RULE = Rule(
    "TS203",
    "softmax-before-cross-entropy",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{value}` went through {activation} before {loss}",
        zh="`{value}` 在传入 {loss} 之前已经过 {activation}",
    ),
    why=Text(
        en="{loss} applies log_softmax itself; on probabilities its loss cannot fall below "
        "log(1 + (C-1)/e) for C classes (1.46 for 10) and the gradients shrink",
        zh="{loss} 内部会做 log_softmax；输入若已是概率，C 类的损失下限为 log(1 + (C-1)/e)"
        "（10 类约 1.46），梯度也随之变小",
    ),
    suggest=Text(
        en="pass the raw logits; apply softmax only where probabilities are shown or used",
        zh="直接传入原始 logits；只在需要概率的地方再做 softmax",
    ),
    title=Text(
        en="Cross entropy is given probabilities instead of logits",
        zh="交叉熵的输入是概率而不是 logits",
    ),
    page=Text(
        en="The first argument of `F.cross_entropy` and of anything made from "
        "`nn.CrossEntropyLoss` is followed back: through names, reshapes, a model of the project "
        "whose `forward` always returns a softmax, and an `nn.Sequential` that ends in "
        "`nn.Softmax`.\n\n"
        "- Softmax twice trains, only slowly and to a worse end: no error shows it.\n"
        "- `log_softmax` before cross entropy changes no value (applying it twice gives the same), "
        "so that is LOW: one pass of work for nothing. `nll_loss` is the partner of "
        "`log_softmax`.\n"
        "- Quiet when a branch leaves it open which value arrives, and for the target argument, "
        "which may be probabilities.",
        zh="沿着变量、变形操作、`forward` 总是返回 softmax 的项目内模型，以及以 `nn.Softmax` 结尾的 "
        "`nn.Sequential`，追溯 `F.cross_entropy` 或由 `nn.CrossEntropyLoss` 创建的对象的第一个参数。\n\n"
        "- 重复 softmax 仍能训练，只是更慢、结果更差，不会报错。\n"
        "- 交叉熵之前做 `log_softmax` 不改变数值（重复应用结果相同），因此只报 LOW：白做一次计算。"
        "与 `log_softmax` 搭配的是 `nll_loss`。\n"
        "- 分支导致无法确定取值时不报告；目标参数可以是概率，不检查。",
    ),
    bad="""\
import torch
import torch.nn.functional as F

def loss_of(model, x, y):
    probs = F.softmax(model(x), dim=1)
    return F.cross_entropy(probs, y)
""",
    good="""\
import torch
import torch.nn.functional as F

def loss_of(model, x, y):
    logits = model(x)
    return F.cross_entropy(logits, y)
""",
    words=("CrossEntropyLoss", "cross_entropy"),
)

_TWICE = Text(
    en="{loss} applies log_softmax itself; a second one changes no value and costs a pass over the "
    "logits",
    zh="{loss} 内部会做 log_softmax；再做一次不改变数值，只是多扫一遍 logits",
)


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    for loss in loss_calls(scene, LOSSES):
        wrong = loss.content & {"softmax", "log_softmax"}
        if not wrong:
            continue
        twice = "softmax" not in wrong
        level = LOW if twice else HIGH if len(loss.content) == 1 else MEDIUM
        yield RULE.at(
            loss.value,
            severity=level,
            why=_TWICE if twice else None,
            value=scene.brief(loss.value),
            activation="log_softmax" if twice else "softmax",
            loss=loss.name,
        )
