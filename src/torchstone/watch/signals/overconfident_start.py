"""A classifier that is sure of wrong answers before it has learned anything."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from torchstone.core.text import Text
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "overconfident_start",
    phase="call",
    of="run",
    title=Text("initial loss of a classifier", "分类器的初始损失"),
    why=Text(
        "before training all classes should be about equally likely, with a loss of ln(classes); a much higher loss means that the initialisation is too large, and the first thousand steps are spent on correcting it",
        "训练前各类应大致等可能，损失约为 ln(类别数)；损失高出很多说明初始化过大，最初上千步都用于修正它",
    ),
    remedy=Text(
        "check the initialisation of linear and embedding layers, and the scale of the inputs",
        "检查线性层与嵌入层的初始化，以及输入的尺度",
    ),
)

FROM_START = True
_LOOKED_AT = 5
_TIMES = 2.0
_FAR = 4.0
_FEWEST_CLASSES = 3


@SIGNAL.on_call
def first(call: TrainingCall) -> Iterator[Alarm]:
    if call.step > _LOOKED_AT or call.loss is None or not math.isfinite(call.loss):
        return
    seen = call.memory.setdefault("first_losses", [])
    assert isinstance(seen, list)
    even = math.log(max(call.output.classes, 1))
    bad = call.batch.labelled and call.output.classes >= _FEWEST_CLASSES
    # a loss that is summed over the batch is large too, but the outputs of a fresh model are not
    seen.append(bad and call.loss > _TIMES * even and call.output.scale > _FAR)
    if call.step == _LOOKED_AT and len(seen) == _LOOKED_AT and all(seen):
        yield Alarm(
            SIGNAL.name,
            Text(
                f"overconfident_start: loss {call.loss:.3g} where {call.output.classes} equally likely "
                f"classes would give {even:.3g}; outputs of size {call.output.scale:.3g}",
                f"overconfident_start：损失 {call.loss:.3g}，而 {call.output.classes} 个等可能类别应为 "
                f"{even:.3g}；输出大小 {call.output.scale:.3g}",
            ),
            value=call.loss,
        )


def fault(toy: Any) -> None:
    """The last layer is drawn at unit deviation, and a half more."""
    with torch.no_grad():
        toy.model[7].weight.normal_(0, 1.5)
