"""An optimizer steps with the gradients of the backward passes before it."""

from __future__ import annotations

from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.text import Text

CLEARED = ProbeRule(
    "EX102",
    "gradients-cleared-before-step",
    Severity.HIGH,
    "wrong result",
    Text(
        "an optimizer steps without any gradient although a backward pass was made",
        "已进行反向传播，但优化器更新时没有任何梯度",
    ),
    Text(
        "the gradients were cleared between the backward pass and the step: nothing is learned",
        "梯度在反向传播与更新之间被清除：模型学不到任何东西",
    ),
    Text(
        "clear the gradients after the step or before the backward pass",
        "请在更新之后或反向传播之前清除梯度",
    ),
)
REVERSED = ProbeRule(
    "EX103",
    "gradient-reversed",
    Severity.HIGH,
    "wrong result",
    Text(
        "an optimizer steps against the gradient of its backward passes",
        "优化器使用的梯度与反向传播得到的梯度方向相反",
    ),
    Text(
        "something between the backward pass and the step turns the gradient around: the loss rises",
        "反向传播与更新之间有代码反转了梯度：损失会上升",
    ),
    Text("look at what changes `.grad` before the step", "检查更新之前修改 `.grad` 的代码"),
)
RULES = (CLEARED, REVERSED)
_ENOUGH = 2
"""Steps of one optimizer that show the same: a single one may be a start."""


def examine(subject: Subject) -> Examined:
    steps = subject.run.steps
    if not steps:
        return NOTHING_TO_LOOK_AT
    shown = []
    for optimizer in dict.fromkeys(item.optimizer for item in steps):
        own = [item for item in steps if item.optimizer == optimizer]
        cleared = [item for item in own if item.cleared]
        against = [item for item in own if item.alignment < 0]
        if len(cleared) >= _ENOUGH and len(cleared) == len(own):
            shown.append(
                Shown(
                    CLEARED,
                    cleared[0].place,
                    Text("none of {count} steps had a gradient", "{count} 次更新均没有梯度"),
                    {"count": str(len(own))},
                    (
                        number(
                            "steps without a gradient",
                            "没有梯度的更新",
                            len(cleared),
                            "",
                            IN_THE_RUN,
                        ),
                    ),
                )
            )
        if len(against) >= _ENOUGH and len(against) > len(own) / 2:
            shown.append(
                Shown(
                    REVERSED,
                    against[0].place,
                    Text(
                        "{count} of {total} steps go against the gradient (cosine {cosine})",
                        "{total} 次更新中有 {count} 次与梯度方向相反（余弦 {cosine}）",
                    ),
                    {
                        "count": str(len(against)),
                        "total": str(len(own)),
                        "cosine": f"{against[0].alignment:.3f}",
                    },
                    (number("cosine", "余弦", against[0].alignment, "", IN_THE_RUN),),
                )
            )
    return Examined(tuple(shown), decided=True)
