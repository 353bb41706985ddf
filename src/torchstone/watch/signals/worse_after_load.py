"""A loss that is worse after weights were loaded than it was before."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "worse_after_load",
    phase="call",
    of="run",
    title=Text("loss after loading weights", "加载权重后的损失"),
    why=Text(
        "a checkpoint of this run should not raise the loss: the keys did not match, or the weights belong to another run or are freshly initialised",
        "本次训练的检查点不应使损失升高：键不匹配，或权重属于别的训练，或是刚初始化的",
    ),
    remedy=Text(
        "check what load_state_dict returned (missing and unexpected keys) and which file was loaded",
        "检查 load_state_dict 的返回值（缺失与多余的键）以及加载了哪个文件",
    ),
    severity=Severity.HIGH,
)

_BEFORE = 32
_AFTER = 8
_WORSE = 1.25


@SIGNAL.on_call
def worse(call: TrainingCall) -> Iterator[Alarm]:
    losses = call.memory.setdefault("losses", [])
    assert isinstance(losses, list)
    if call.reloaded and "loss_before" not in call.memory and len(losses) >= _BEFORE:
        call.memory["loss_before"] = sorted(losses)
        losses.clear()
    if call.loss is None or not math.isfinite(call.loss) or call.loss <= 0:
        return
    losses.append(call.loss)
    del losses[:-_BEFORE]
    before = call.memory.get("loss_before")
    if not isinstance(before, list) or len(losses) < _AFTER:
        return
    del call.memory["loss_before"]
    usual, high = before[len(before) // 2], before[-len(before) // 8]
    now = float(np.median(losses))
    if now > _WORSE * usual and now > high:
        yield Alarm(
            SIGNAL.name,
            Text(
                f"worse_after_load: loss {now:.3g} in the {_AFTER} steps after weights were loaded, "
                f"{usual:.3g} before",
                f"worse_after_load：加载权重后的 {_AFTER} 步损失为 {now:.3g}，此前为 {usual:.3g}",
            ),
            value=now,
        )


def fault(toy: Any) -> None:
    """A checkpoint whose keys do not match: fresh weights are loaded."""
    fresh = type(toy)(7).model.state_dict()
    toy.model.load_state_dict(fresh)
