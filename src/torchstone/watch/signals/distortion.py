"""How far a cast to the narrow format turns the gradient: 1 - cosine, on a sample of every layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.runtime.number_formats import dtype_of
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal
from torchstone.watch.measure.update import Update
from torchstone.watch.measure.updates import Updates

SIGNAL = Signal(
    "distortion",
    phase="sample",
    of="layer",
    title=Text("direction error of the cast (1 - cosine)", "类型转换的方向误差（1 - 余弦）"),
    why=Text(
        "the cast changes the direction of the gradient, and so the direction of the update; large values dominate this number, so read it together with the share flushed to zero",
        "类型转换改变了梯度方向，更新方向也随之改变；该指标由大数值主导，应与刷零占比一起看",
    ),
    remedy=Text(
        "raise the loss scale, or keep this layer in a wider format",
        "提高 loss scale，或让该层使用更宽的格式",
    ),
    limits=Limits(
        spike=(8.0, NEVER), shift=(5.0, NEVER), ramp=(8.0, NEVER), sigmas=12.0, floor=1e-3
    ),
)


@SIGNAL.measure
def distortion(updates: Updates) -> NDArray[np.float64]:
    return np.array([_distortion(update) for update in updates.each])


def _distortion(update: Update) -> NDArray[np.float64]:
    samples = update.reading.samples
    if samples is None:
        return update.nothing()
    if (
        update.scaled
        and update.reading.rows["largest"].max(initial=0.0) >= update.format.overflow_from
    ):
        return update.nothing()  # the loss scaler leaves this step out
    dtype = dtype_of(update.format)
    if dtype == torch.float32:
        return np.zeros(len(update.watched.layers))
    wide = torch.from_numpy(samples)
    kept = wide.clamp(-update.format.largest, update.format.largest).to(dtype).float().numpy()
    by = update.watched.by_layer
    dot = by((samples * kept).sum(1, dtype=np.float64))
    lengths = by((samples**2).sum(1, dtype=np.float64)) * by((kept**2).sum(1, dtype=np.float64))
    with np.errstate(all="ignore"):
        return np.where(lengths > 0, 1 - dot / np.sqrt(lengths), np.nan)


def fault(toy: Any) -> None:
    """Gradients shrink until fp16 keeps few digits of them."""
    toy.narrow = "fp16"
    toy.loss_factor = 1e-6
