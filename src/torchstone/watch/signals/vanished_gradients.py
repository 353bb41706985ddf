"""Gradients of a parameter that have all but vanished, or were never there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from torchstone.core.text import Text
from torchstone.watch.measure.signal import Alarm, Signal
from torchstone.watch.measure.update import Update

SIGNAL = Signal(
    "vanished_gradients",
    phase="gradient",
    of="layer",
    title=Text("parameters whose gradient has vanished", "梯度消失的参数"),
    why=Text(
        "the gradient of this parameter fell to almost nothing compared with its own past, so it no longer reaches the loss: a detach, a saturated unit, a normalisation that cancels it, or two factors that both start at zero",
        "该参数的梯度相对自身过去几乎降为零，说明它不再影响损失：detach、饱和的单元、将其抵消的归一化，或两个都从零开始的因子",
    ),
    remedy=Text(
        "follow this parameter through the forward pass and check every operation between it and the loss",
        "沿前向过程追踪该参数，检查它与损失之间的每个算子",
    ),
)

_GONE = 1e-4
_EVERY = 4
_IN_A_ROW = 2
_KNOWN = 20
_MEMORY = 0.08
_NEGLIGIBLE = 1e-5


@SIGNAL.on_update
def vanished(update: Update) -> Iterator[Alarm]:
    if update.number % _EVERY or not update.finite or not update.reading.present.any():
        return
    rows = update.reading.rows
    size = np.sqrt(rows["sum_of_squares"]) / update.scale
    usual = update.memory.setdefault("usual_size", size.copy())
    row = update.memory.setdefault("vanished", np.zeros(len(size), np.int64))
    assert isinstance(usual, np.ndarray)
    assert isinstance(row, np.ndarray)
    if update.number == _KNOWN:
        yield from _never(update, usual)
    matters = usual > _NEGLIGIBLE * usual.max(initial=0.0)
    gone = (size < _GONE * usual) & matters & update.reading.present
    # the whole gradient may shrink, with the loss or its scale; then it is no matter of one
    if gone.any() and size.max(initial=0.0) < 100 * _GONE * usual.max(initial=0.0):
        gone[:] = False
    row[:] = np.where(gone, row + 1, 0)
    usual += np.where(gone, 0.0, _MEMORY * (size - usual))
    lost = np.flatnonzero(row >= _IN_A_ROW)
    if update.warm and len(lost):
        yield _alarm(update, lost, "all but vanished", "几乎消失")


def _never(update: Update, usual: np.ndarray[Any, np.dtype[np.float64]]) -> Iterator[Alarm]:
    """Gradients that were exactly zero at every step so far, where others were not."""
    # a bias may cancel out of a loss by design, as in the critic of a GAN; a matrix does not
    matrix = np.array([p.dim() > 1 for p in update.watched.parameters])
    zero = np.flatnonzero(
        (usual == 0) & update.reading.present & matrix & (update.watched.sizes > 0)
    )
    if len(zero) and usual.any():
        yield _alarm(update, zero, "been zero since the start", "自开始以来一直为零")


def _alarm(update: Update, places: np.ndarray[Any, np.dtype[np.int64]], en: str, zh: str) -> Alarm:
    name = update.watched.names[int(places[0])]
    return Alarm(
        SIGNAL.name,
        Text(
            f"vanished_gradients: the gradients of {len(places)} parameter(s) have {en}, "
            f"first '{name}'",
            f"vanished_gradients：{len(places)} 个参数的梯度{zh}，首个为 '{name}'",
        ),
        name,
        float(len(places)),
    )


def fault(toy: Any) -> None:
    """A bias is followed by a subtraction of the mean over the batch, which takes it out."""
    toy.model[4].register_forward_hook(lambda _, __, x: x - x.mean(0) + x.mean(0).detach())
