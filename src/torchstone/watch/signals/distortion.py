"""How far a cast to the narrow format turns the gradient: 1 - cosine, on a sample of every layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.runtime.number_formats import dtype_of
from torchstone.watch.beat import Beat
from torchstone.watch.beats import Beats
from torchstone.watch.channels import NEVER, Limits
from torchstone.watch.signal import Signal

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
def distortion(beats: Beats) -> NDArray[np.float64]:
    return np.array([_distortion(beat) for beat in beats.each])


def _distortion(beat: Beat) -> NDArray[np.float64]:
    samples = beat.reading.samples
    if samples is None:
        return beat.nothing()
    if beat.scaled and beat.reading.rows["largest"].max(initial=0.0) >= beat.format.overflow_from:
        return beat.nothing()  # the loss scaler leaves this step out
    dtype = dtype_of(beat.format)
    if dtype == torch.float32:
        return np.zeros(len(beat.actor.layers))
    wide = torch.from_numpy(samples)
    kept = wide.clamp(-beat.format.largest, beat.format.largest).to(dtype).float().numpy()
    by = beat.actor.by_layer
    dot = by((samples * kept).sum(1, dtype=np.float64))
    lengths = by((samples**2).sum(1, dtype=np.float64)) * by((kept**2).sum(1, dtype=np.float64))
    with np.errstate(all="ignore"):
        return np.where(lengths > 0, 1 - dot / np.sqrt(lengths), np.nan)


def fault(toy: Any) -> None:
    """Gradients shrink until fp16 keeps few digits of them."""
    toy.narrow = "fp16"
    toy.loss_factor = 1e-6
