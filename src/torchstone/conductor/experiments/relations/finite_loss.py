"""The loss is finite at every step."""

from __future__ import annotations

import math

from torchstone.conductor.experiments.recording.run import Loss, Run
from torchstone.conductor.experiments.recording.session import find_non_finite
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.observe.non_finite import NonFinite

NOT_FINITE = ProbeRule(
    "EX101",
    "loss-not-finite",
    Severity.HIGH,
    "instability",
    Text("the loss becomes NaN or infinite", "损失变为 NaN 或无穷大"),
    Text(
        "one such value spreads to every parameter in the next update",
        "这样的值会在下一次更新中扩散到所有参数",
    ),
    Text(
        "guard the operator that makes it: clamp its input, add an epsilon, mask the rows that have nothing to divide by",
        "保护产生该值的算子：限制其输入范围、加上 epsilon，或屏蔽无可除数的行",
    ),
)
RULES = (NOT_FINITE,)
_MOST_ROWS = 6


def examine(subject: Subject) -> Examined:
    losses = subject.run.losses
    if not losses:
        return NOTHING_TO_LOOK_AT
    bad = next((item for item in losses if not math.isfinite(item.value)), None)
    if bad is None:
        return Examined(decided=True)
    again = find_non_finite(subject.start, math.isinf(bad.value))
    return Examined((_describe(bad, again),), decided=True)


def _describe(bad: Loss, again: Run) -> Shown:
    cause = again.non_finite
    numbers = (number("optimizer steps before it", "此前的优化步数", bad.step, "", IN_THE_RUN),)
    if cause is None or not cause.place:
        return Shown(
            NOT_FINITE,
            bad.place,
            Text("the loss is {value} at step {step}", "第 {step} 步的损失为 {value}"),
            {"value": str(bad.value), "step": str(bad.step)},
            numbers,
        )
    return Shown(
        NOT_FINITE,
        cause.place,
        Text(
            "`{operator}` makes the first value that is not finite, at step {step}, in {rows}; the loss is {value} (inputs {inputs})",
            "`{operator}` 在第 {step} 步产生第一个非有限值，位于{rows_zh}，损失为 {value}（输入 {inputs}）",
        ),
        {
            "operator": cause.operator,
            "step": str(again.non_finite_step),
            "rows": _rows(cause).en,
            "rows_zh": _rows(cause).zh,
            "value": str(bad.value),
            "inputs": "; ".join(cause.given),
        },
        (
            *numbers,
            number(
                "share of its output that is not finite",
                "输出中非有限值的比例",
                cause.share,
                "",
                IN_THE_RUN,
            ),
        ),
    )


def _rows(cause: NonFinite) -> Text:
    """Which rows of its result: in most programs the samples of the batch."""
    named = ", ".join(map(str, cause.rows[:_MOST_ROWS]))
    more = " …" if len(cause.rows) > _MOST_ROWS else ""
    if not cause.shape:
        return Text("its only element", "其唯一元素")
    count = cause.shape[0]
    return Text(f"rows {named}{more} of {count}", f"{count} 行中的第 {named}{more} 行")
