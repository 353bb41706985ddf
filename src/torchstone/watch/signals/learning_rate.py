"""A learning rate that jumps far above all that it has been."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.signal import Alarm, Signal
from torchstone.watch.measure.update import Update

SIGNAL = Signal(
    "learning_rate",
    phase="gradient",
    of="run",
    title=Text("learning rate", "学习率"),
    why=Text(
        "a sudden rise of the learning rate can destroy a trained model within a few steps",
        "学习率突然升高会在几步之内毁掉已训练的模型",
    ),
    remedy=Text(
        "check the scheduler, restarts of the schedule, and code that writes to param_groups",
        "检查调度器、调度的重启，以及改写 param_groups 的代码",
    ),
    severity=Severity.HIGH,
)


_JUMP = 4.0
_KNOWN = 10
_TINY = 1e-5  # where warm-ups by epoch begin
_FALL = 50.0
_SOON = 50
_PART = 0.3
_DROP = 3.0
_STANDS = 40
_NEXT_TO_NOTHING = 0.05


@SIGNAL.on_update
def jumped(update: Update) -> Iterator[Alarm]:
    most = float(update.memory.get("rate", 0.0))  # type: ignore[arg-type]
    if (
        not math.isfinite(update.rate)
        or update.rate < 0
        or (update.number >= _KNOWN and most > _TINY and update.rate > _JUMP * most)
    ) or _fell(update, most):
        yield _alarm(update, most)
    elif _crept(update, most):
        yield _alarm(update, float(update.memory["rate_settled"]))  # type: ignore[arg-type]
    elif _stands(update, most):
        base = update.base_rate
        yield Alarm(
            SIGNAL.name,
            Text(
                f"learning_rate: {update.rate:.3g} for {update.number} steps, {update.rate / base:.2%} of its "
                "base; is its schedule stepped with every batch?",
                f"learning_rate: {update.number} 步以来一直为 {update.rate:.3g}，仅为基准的 "
                f"{update.rate / base:.2%}；调度器是否按批次推进？",
            ),
            value=update.rate,
        )
    update.memory["rate"] = max(most, update.rate)


def _stands(update: Update, most: float) -> bool:
    """Next to nothing since the start, and not on its way: a warm-up in batches counts epochs."""
    if update.rate != update.memory.get("rate_last"):
        update.memory["rate_moved"] = update.number
    update.memory["rate_last"] = update.rate
    still = update.number - int(update.memory.get("rate_moved", 0))  # type: ignore[call-overload]
    if update.number % _STANDS or still < _STANDS - 5 or update.number > 5 * _STANDS:
        return False
    if update.age > 2 * update.number:  # resumed: the schedule may have come down to here
        return False
    return 0 < max(most, update.rate) < _NEXT_TO_NOTHING * update.base_rate


def _crept(update: Update, most: float) -> bool:
    """Far above a peak that had stood for fifty steps, in steps of which none is a jump."""
    if update.rate > most:
        update.memory["rate_rose"] = update.number
    elif update.number - int(update.memory.get("rate_rose", update.number)) == _SOON:  # type: ignore[call-overload]
        update.memory["rate_settled"] = most
    settled = float(update.memory.get("rate_settled", math.inf))  # type: ignore[arg-type]
    return settled > _TINY and update.rate > _JUMP * settled


def _fell(update: Update, most: float) -> bool:
    """From half of its largest value to next to nothing within fifty steps: a schedule in a hurry."""
    last = float(update.memory.get("rate_before", update.rate))  # type: ignore[arg-type]
    update.memory["rate_before"] = update.rate
    drops = int(update.memory.get("rate_drops", 0)) + (update.rate * _DROP < last)  # type: ignore[call-overload]
    update.memory["rate_drops"] = drops
    if update.rate >= 0.5 * most:
        update.memory["rate_high"], update.memory["rate_drops"] = update.number, 0
        return False
    since = update.number - int(update.memory.get("rate_high", update.number))  # type: ignore[call-overload]
    # a whole schedule that is short ends as fast; what counts is the time that it stood high
    hurried = since <= _SOON and (since < _PART * update.number or drops > 1)
    return update.number > _KNOWN and hurried and update.rate * _FALL < most


def _alarm(update: Update, most: float) -> Alarm:
    return Alarm(
        SIGNAL.name,
        Text(
            f"learning_rate: {update.rate:.3g} (at most {most:.3g} before)",
            f"learning_rate: {update.rate:.3g}（此前最大 {most:.3g}）",
        ),
        value=update.rate,
    )


def fault(toy: Any) -> None:
    """The learning rate becomes ten times what it was."""
    for group in toy.optimizer.param_groups:
        group["lr"] *= 10
