"""Predictions and targets of one batch are compared element by element."""

from __future__ import annotations

from torchstone.conductor.experiments.subject import Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.text import Text

STRETCHED = ProbeRule(
    "EX106",
    "operands-stretched",
    Severity.HIGH,
    "wrong result",
    Text(
        "a column and a row of the same length are combined into a table",
        "同样长度的列与行被广播成一张表",
    ),
    Text(
        "every prediction is compared with every target instead of its own",
        "每个预测与每个目标比较，而不是与自己的目标比较",
    ),
    Text(
        "give both the same shape: `.squeeze(-1)` or `.unsqueeze(-1)`",
        "请使两者形状一致：`.squeeze(-1)` 或 `.unsqueeze(-1)`",
    ),
)
RULES = (STRETCHED,)


def examine(subject: Subject) -> Examined:
    found = {item.place: item for item in reversed(subject.run.broadcasts) if item.place}
    shown = tuple(
        Shown(
            STRETCHED,
            place,
            Text(
                "`{operator}` of {left} and {right} gives a table of {count} x {count}",
                "{left} 与 {right} 的 `{operator}` 得到 {count} x {count} 的表",
            ),
            {
                "operator": item.operator,
                "left": str(item.left),
                "right": str(item.right),
                "count": str(item.left[0]),
            },
            (number("side of the table", "表的边长", item.left[0], "", IN_THE_RUN),),
        )
        for place, item in found.items()
    )
    return Examined(shown, decided=bool(subject.run.losses))
