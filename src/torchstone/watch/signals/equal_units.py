"""Units of a layer that all start with the same weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.signal import Alarm, Signal
from torchstone.watch.measure.update import Update
from torchstone.watch.read.reading import plain

SIGNAL = Signal(
    "equal_units",
    phase="gradient",
    of="layer",
    title=Text("identical units", "完全相同的单元"),
    why=Text(
        "units that start with the same weights get the same gradients: a layer of a hundred units has the capacity of one",
        "初始权重相同的单元得到相同的梯度：一百个单元的层只有一个单元的容量",
    ),
    remedy=Text("initialise these weights with random values", "用随机值初始化这些权重"),
    severity=Severity.MEDIUM,
)

_MOST = 1 << 22


@SIGNAL.on_update
def equal(update: Update) -> Iterator[Alarm]:
    if update.number or not update.watched.on_host:
        return
    for name, parameter in zip(update.watched.names, update.watched.parameters, strict=True):
        if parameter.dim() < 2 or parameter.numel() > _MOST or not _one_unit(plain(parameter)):
            continue
        yield Alarm(
            SIGNAL.name,
            Text(
                f"equal_units: all {parameter.shape[0]} units of '{name}' have the same weights",
                f"equal_units：'{name}' 的 {parameter.shape[0]} 个单元权重完全相同",
            ),
            name,
            float(parameter.shape[0]),
        )
        return


def _one_unit(weights: torch.Tensor) -> bool:
    """Several rows, all the same and not zero; layers that start at zero break out by themselves."""
    rows = weights.detach().reshape(weights.shape[0], -1) if weights.numel() else weights
    if rows.dim() != 2 or rows.shape[0] < 2 or rows.shape[1] < 2:
        return False
    return bool((rows[1:] == rows[:1]).all()) and bool(rows[0].any())


def fault(toy: Any) -> None:
    """Every unit of a layer is a copy of the first, from the start."""
    with torch.no_grad():
        for layer in (toy.model[0], toy.model[4], toy.model[7]):
            layer.weight.copy_(layer.weight[:1].expand_as(layer.weight))
            layer.bias.zero_()


FROM_START = True
