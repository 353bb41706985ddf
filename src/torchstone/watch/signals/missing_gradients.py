"""Parameters that used to get a gradient and get none any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.signal import Alarm, Signal
from torchstone.watch.measure.update import KNOWN_AFTER, Update

SIGNAL = Signal(
    "missing_gradients",
    phase="gradient",
    of="layer",
    title=Text("gradients became None", "梯度变为 None"),
    why=Text(
        "a branch was detached, skipped or frozen: its weights are no longer updated",
        "某个分支被 detach、跳过或冻结：其权重不再更新",
    ),
    remedy=Text(
        "look for a detach, an unused branch, or requires_grad set to False",
        "检查 detach、未使用的分支或 requires_grad=False",
    ),
    severity=Severity.HIGH,
)


_IN_A_ROW = 3
_USUAL = 0.9


@SIGNAL.on_update
def missing(update: Update) -> Iterator[Alarm]:
    present = update.reading.present
    if update.number == KNOWN_AFTER:
        yield from _never(update)
    if present.all() and "gone" not in update.memory:
        update.memory["all_present"] = update.number + 1
        return
    start = float(update.memory.get("all_present", 0))  # type: ignore[arg-type]
    seen = update.memory.setdefault("present", np.full(len(present), start))
    gone = update.memory.setdefault("gone", np.zeros(len(present), np.int64))
    assert isinstance(seen, np.ndarray)
    assert isinstance(gone, np.ndarray)
    if update.number >= KNOWN_AFTER:
        usual = seen > _USUAL * update.number
        gone[:] = np.where(usual & ~present, gone + 1, 0)
        # as often as it has been missing before, by chance, one time in ten million
        rate = np.clip(1 - seen / update.number, 1e-3, 0.5)
        lost = np.flatnonzero(gone >= np.maximum(_IN_A_ROW, np.ceil(np.log(1e-7) / np.log(rate))))
        if len(lost):
            name = update.watched.names[int(lost[0])]
            frozen = not update.watched.parameters[int(lost[0])].requires_grad
            yield Alarm(
                SIGNAL.name,
                Text(
                    f"missing_gradients: {len(lost)} parameter(s) no longer get a gradient"
                    f"{' (frozen)' if frozen else ''}, first '{name}'",
                    f"missing_gradients：{len(lost)} 个参数不再得到梯度"
                    f"{'（已冻结）' if frozen else ''}，首个为 '{name}'",
                ),
                name,
                float(len(lost)),
            )
    seen += present


def _never(update: Update) -> Iterator[Alarm]:
    """Parameters that were to be trained, and have had no gradient since the start."""
    if never := update.awaited:
        name = update.watched.names[never[0]]
        yield Alarm(
            SIGNAL.name,
            Text(
                f"missing_gradients: {len(never)} parameter(s) have had no gradient since the "
                f"start, first '{name}'",
                f"missing_gradients：{len(never)} 个参数从一开始就没有梯度，首个为 '{name}'",
            ),
            name,
            float(len(never)),
            Severity.MEDIUM,
        )


def fault(toy: Any) -> None:
    """The output of the first layer is detached."""
    toy.model[0].register_forward_hook(lambda *call: call[-1].detach())
