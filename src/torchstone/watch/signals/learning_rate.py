"""A learning rate that jumps far above all that it has been."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.beat import Beat
from torchstone.watch.signal import Alarm, Signal

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


@SIGNAL.on_beat
def jumped(beat: Beat) -> Iterator[Alarm]:
    most = float(beat.memory.get("rate", 0.0))  # type: ignore[arg-type]
    if (
        not math.isfinite(beat.rate)
        or beat.rate < 0
        or (beat.number >= _KNOWN and most > _TINY and beat.rate > _JUMP * most)
    ) or _fell(beat, most):
        yield _alarm(beat, most)
    elif _crept(beat, most):
        yield _alarm(beat, float(beat.memory["rate_settled"]))  # type: ignore[arg-type]
    elif _stands(beat, most):
        base = beat.actor.base_rate
        yield Alarm(
            SIGNAL.name,
            Text(
                f"learning_rate: {beat.rate:.3g} for {beat.number} steps, {beat.rate / base:.2%} of its "
                "base; is its schedule stepped with every batch?",
                f"learning_rate: {beat.number} 步以来一直为 {beat.rate:.3g}，仅为基准的 "
                f"{beat.rate / base:.2%}；调度器是否按批次推进？",
            ),
            value=beat.rate,
        )
    beat.memory["rate"] = max(most, beat.rate)


def _stands(beat: Beat, most: float) -> bool:
    """Next to nothing since the start, and not on its way: a warm-up in batches counts epochs."""
    if beat.rate != beat.memory.get("rate_last"):
        beat.memory["rate_moved"] = beat.number
    beat.memory["rate_last"] = beat.rate
    still = beat.number - int(beat.memory.get("rate_moved", 0))  # type: ignore[call-overload]
    if beat.number % _STANDS or still < _STANDS - 5 or beat.number > 5 * _STANDS:
        return False
    if beat.age > 2 * beat.number:  # resumed: the schedule may have come down to here
        return False
    return 0 < max(most, beat.rate) < _NEXT_TO_NOTHING * beat.actor.base_rate


def _crept(beat: Beat, most: float) -> bool:
    """Far above a peak that had stood for fifty steps, in steps of which none is a jump."""
    if beat.rate > most:
        beat.memory["rate_rose"] = beat.number
    elif beat.number - int(beat.memory.get("rate_rose", beat.number)) == _SOON:  # type: ignore[call-overload]
        beat.memory["rate_settled"] = most
    settled = float(beat.memory.get("rate_settled", math.inf))  # type: ignore[arg-type]
    return settled > _TINY and beat.rate > _JUMP * settled


def _fell(beat: Beat, most: float) -> bool:
    """From half of its largest value to next to nothing within fifty steps: a schedule in a hurry."""
    last = float(beat.memory.get("rate_before", beat.rate))  # type: ignore[arg-type]
    beat.memory["rate_before"] = beat.rate
    drops = int(beat.memory.get("rate_drops", 0)) + (beat.rate * _DROP < last)  # type: ignore[call-overload]
    beat.memory["rate_drops"] = drops
    if beat.rate >= 0.5 * most:
        beat.memory["rate_high"], beat.memory["rate_drops"] = beat.number, 0
        return False
    since = beat.number - int(beat.memory.get("rate_high", beat.number))  # type: ignore[call-overload]
    # a whole schedule that is short ends as fast; what counts is the time that it stood high
    hurried = since <= _SOON and (since < _PART * beat.number or drops > 1)
    return beat.number > _KNOWN and hurried and beat.rate * _FALL < most


def _alarm(beat: Beat, most: float) -> Alarm:
    return Alarm(
        SIGNAL.name,
        Text(
            f"learning_rate: {beat.rate:.3g} (at most {most:.3g} before)",
            f"learning_rate: {beat.rate:.3g}（此前最大 {most:.3g}）",
        ),
        value=beat.rate,
    )


def fault(toy: Any) -> None:
    """The learning rate becomes ten times what it was."""
    for group in toy.optimizer.param_groups:
        group["lr"] *= 10
