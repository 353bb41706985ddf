"""A loss scaler that backs off until nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "loss_scale",
    phase="call",
    of="run",
    title=Text("loss scale", "loss scale"),
    why=Text(
        "the scaler skips step after step: the scale falls until gradients underflow, and training stalls",
        "GradScaler 不断跳过更新：scale 持续下降直至梯度下溢，训练停滞",
    ),
    remedy=Text(
        "find the operation that overflows in fp16, or use bf16 where the hardware supports it",
        "找出在 fp16 中溢出的算子，或在硬件支持时改用 bf16",
    ),
    severity=Severity.HIGH,
)


_IN_A_ROW = 8
_SETTLED = 16  # the first steps look for the scale
_LOOKED_AT = 24
_OFTEN = 6


@SIGNAL.on_call
def collapsed(call: TrainingCall) -> Iterator[Alarm]:
    row = int(call.memory.get("skipped", 0))  # type: ignore[call-overload]
    row = row + 1 if call.skipped else (0 if call.updates else row)
    call.memory["skipped"] = row
    if call.scaled and call.step > _SETTLED:
        yield from _often(call)
    if row >= _IN_A_ROW or (call.scaled and 0 <= call.scale < 1):
        yield Alarm(
            SIGNAL.name,
            Text(
                f"loss_scale: {call.scale:.4g} after {row} skipped steps in a row",
                f"loss_scale: {call.scale:.4g}，已连续跳过 {row} 步",
            ),
            value=call.scale,
        )


def _often(call: TrainingCall) -> Iterator[Alarm]:
    """A scale that grows at once after it had to fall throws a good part of the steps away."""
    recent = call.memory.setdefault("skips", [])
    assert isinstance(recent, list)
    if call.skipped or call.updates:
        recent.append(bool(call.skipped))
        del recent[:-_LOOKED_AT]
    if sum(recent) >= _OFTEN:
        yield Alarm(
            SIGNAL.name,
            Text(
                f"loss_scale: {sum(recent)} of the last {len(recent)} steps were skipped; "
                f"the scale is {call.scale:.4g}",
                f"loss_scale: 最近 {len(recent)} 步中有 {sum(recent)} 步被跳过；缩放为 {call.scale:.4g}",
            ),
            value=call.scale,
        )


def fault(toy: Any) -> None:
    """Every gradient overflows under the loss scaler."""
    toy.loss_factor = float("inf")
