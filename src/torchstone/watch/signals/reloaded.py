"""Weights that are replaced from outside again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.text import Text
from torchstone.watch.measure.signal import Alarm, Signal
from torchstone.watch.measure.update import Update

SIGNAL = Signal(
    "reloaded",
    phase="gradient",
    of="run",
    title=Text("repeated loading of weights", "反复加载权重"),
    why=Text(
        "weights that are loaded again and again undo the steps in between: resuming once is normal, three times is not",
        "反复加载权重会抵消其间的训练：恢复一次是正常的，三次就不正常",
    ),
    remedy=Text(
        "check the condition under which a checkpoint or an average is restored",
        "检查在什么条件下恢复检查点或平均权重",
    ),
)

_TIMES = 3
_WITHIN = 300


@SIGNAL.on_update
def again(update: Update) -> Iterator[Alarm]:
    if not update.reloaded:
        return
    times = update.memory.setdefault("reloads", [])
    assert isinstance(times, list)
    times[:] = [number for number in times if update.number - number < _WITHIN] + [update.number]
    if len(times) >= _TIMES:
        yield Alarm(
            SIGNAL.name,
            Text(
                f"reloaded: other weights were loaded {len(times)} times in "
                f"{times[-1] - times[0] + 1} steps",
                f"reloaded：{times[-1] - times[0] + 1} 步内加载了 {len(times)} 次不同的权重",
            ),
            value=float(len(times)),
        )


def fault(toy: Any) -> None:
    """The best weights so far are loaded every ten steps, and nothing ever counts as better."""
    best = {name: value.clone() for name, value in toy.model.state_dict().items()}
    count = iter(range(10**6))
    toy.after_step = lambda model: model.load_state_dict(best) if next(count) % 10 == 9 else None
