"""How far the shape of a layer's gradient distribution is from its usual shape, in octaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal
from torchstone.watch.measure.update import Update
from torchstone.watch.measure.updates import Updates
from torchstone.watch.read.reading import WIDTH

SIGNAL = Signal(
    "drift",
    phase="sample",
    of="layer",
    title=Text("drift of the gradient distribution", "梯度分布漂移"),
    why=Text(
        "the ratio between the large and small gradients of this layer changed (sparse, saturated, or with outliers) although its norm may look normal",
        "该层大小梯度之间的比例发生变化（变稀疏、饱和或出现离群值），而范数可能看起来正常",
    ),
    remedy=Text(
        "compare the layer's exponent histograms before and after this step",
        "对比该步前后该层的指数直方图",
    ),
    limits=Limits(
        spike=(6.0, NEVER), shift=(6.0, NEVER), ramp=(6.0, NEVER), sigmas=12.0, floor=0.5
    ),
    unit="octave",
)


_PLACES = [WIDTH * share // 10 for share in (1, 3, 5, 7, 9)]
_ENOUGH = 24  # nonzero values before a shape means anything
_BASELINE = 5  # samples that make the usual shape


@SIGNAL.measure
def drift(updates: Updates) -> NDArray[np.float64]:
    return np.array([_drift(update) for update in updates.each])


def _drift(update: Update) -> NDArray[np.float64]:
    samples = update.reading.samples
    if samples is None:
        return update.nothing()
    size = np.where(np.isfinite(samples), np.abs(samples), 0)
    # what is a million times smaller than the largest is as good as zero
    least = np.maximum(size.max(axis=1, keepdims=True) * 2.0**-20, 1e-38)
    shape = np.log2(np.sort(np.maximum(size, least), axis=1)[:, _PLACES])
    shape = shape - shape[:, 2:3]
    few = (size > least).sum(axis=1) < _ENOUGH
    usual = update.memory.setdefault("drift", [])
    assert isinstance(usual, list)
    if len(usual) < _BASELINE:
        usual.append(shape)
        return update.nothing()
    if len(usual) == _BASELINE:
        usual.append(np.median(np.array(usual), axis=0))
    away = np.abs(shape - usual[-1]).mean(axis=1)
    share = np.where(few, 0.0, update.watched.sizes.astype(np.float64))
    whole = update.watched.by_layer(share)
    with np.errstate(all="ignore"):
        now = np.asarray(update.watched.by_layer(away * share) / whole)
    # one odd sample is no drift: both of the last two must say so
    before = update.memory.get("drift_before")
    update.memory["drift_before"] = now
    return np.minimum(now, before) if isinstance(before, np.ndarray) else now


def fault(toy: Any) -> None:
    """Nine of ten gradient values of every layer become a thousand times smaller."""

    def thin(model: Any) -> None:
        for parameter in model.parameters():
            if parameter.grad is not None:
                flat = parameter.grad.view(-1)
                flat[3:] *= 1e-3 if len(flat) < 10 else 1.0
                flat[::2] *= 1e-4

    toy.after_backward = thin
