"""Settings of the optimizer, other than the learning rate, that change at once in mid-run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.signal import Alarm, Relearn, Signal
from torchstone.watch.measure.update import Update
from torchstone.watch.read.optimizer_facts import SETTINGS

SIGNAL = Signal(
    "optimizer_settings",
    phase="gradient",
    of="run",
    title=Text("optimizer settings", "优化器设置"),
    why=Text(
        "momentum, eps, weight decay or maximize changed in mid-run; the loss may not show it for a long time",
        "momentum、eps、权重衰减或 maximize 在运行中被改变；loss 可能很久都看不出来",
    ),
    remedy=Text(
        "look for code that writes to param_groups, or an optimizer state loaded from another run",
        "查找改写 param_groups 的代码，或从其他训练加载的优化器状态",
    ),
    severity=Severity.MEDIUM,
)

_STEP = 0.25
_TUNED = ("nesterov", "dampening")
_REMEMBERS = 0.9
_DECAYS = 10.0
_SETTLED = 20  # a schedule of momentum changes it at every step


@SIGNAL.on_update
def changed(update: Update) -> Iterator[Alarm | Relearn]:
    now = update.settings
    before = update.memory.get("settings")
    update.memory["settings"] = now
    if before == now or not isinstance(before, list):
        return
    if not _pending(before, now):
        if _is_tuning(before, now):  # steps look otherwise from now on, and rightly
            yield Relearn("update")
        return
    since = int(update.memory.get("settings_since", 0))  # type: ignore[call-overload]
    update.memory["settings_since"] = update.number
    times = int(update.memory.get("settings_times", 0)) + 1  # type: ignore[call-overload]
    update.memory["settings_times"] = times
    if update.number - since < _SETTLED or len(before) != len(now) or times > 2:
        return  # what changes again and again is a schedule
    said = ", ".join([f"{name} {old} → {new}" for name, old, new in _pairs(before, now)][:3])
    yield Alarm(SIGNAL.name, Text(f"optimizer_settings: {said}", f"optimizer_settings：{said}"))


def _pending(before: list[tuple[object, ...]], now: list[tuple[object, ...]]) -> bool:
    """A schedule goes in small steps; a mistake does not."""
    if len(before) != len(now):
        return True
    return any(
        not (_is_near(old, new) or (name == "weight_decay" and _within(old, new, _DECAYS)))
        for name, old, new in _pairs(before, now)
        if name not in _TUNED
    )


def _within(old: object, new: object, factor: float) -> bool:
    """Both are above zero, and neither is more than so many times the other."""
    if not isinstance(old, (int, float)) or not isinstance(new, (int, float)):
        return False
    return 0 < old <= factor * new and new <= factor * old


def _is_tuning(before: list[tuple[object, ...]], now: list[tuple[object, ...]]) -> bool:
    """A form of the step was switched, or second moments are remembered for another time."""
    return any(
        name in _TUNED or (isinstance(old, tuple) and isinstance(new, tuple) and old[-1] != new[-1])
        for name, old, new in _pairs(before, now)
    )


def _pairs(
    before: list[tuple[object, ...]], now: list[tuple[object, ...]]
) -> list[tuple[str, object, object]]:
    return [
        (name, old, new)
        for was, is_ in zip(before, now, strict=True)
        for name, old, new in zip(SETTINGS, was, is_, strict=True)
        if old != new
    ]


def _is_near(old: object, new: object) -> bool:
    if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
        # how long second moments are remembered is tuned in mid-run, and makes no step much larger
        tuned = min(old[-1], new[-1]) >= _REMEMBERS
        pairs = list(zip(old, new, strict=True))
        return all(_is_near(a, b) for a, b in (pairs[:-1] if tuned else pairs))
    if isinstance(old, bool) or not isinstance(old, (int, float)) or not isinstance(new, (int, float)):  # fmt: skip
        return old == new
    pairs = [(old, new)]
    if 0.5 < old < 1 and 0.5 < new < 1:  # of a momentum of 0.99 the 0.01 is what counts
        pairs.append((1 - old, 1 - new))
    return all(abs(b - a) <= _STEP * max(abs(a), abs(b)) for a, b in pairs)


def fault(toy: Any) -> None:
    """eps becomes 1."""
    for group in toy.optimizer.param_groups:
        group["eps"] = 1.0
