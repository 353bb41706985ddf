"""What helps, from the cheapest on, each with what it was measured to lose."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from torchstone.core.text import Text
from torchstone.runtime.number_formats import FP16
from torchstone.tensors.analysis.errors.figures import measure_matrix
from torchstone.tensors.analysis.errors.reductions import add_in_format, add_in_fp32, share_lost
from torchstone.tensors.analysis.values.distribution import Distribution
from torchstone.tensors.formats import GRANULARITY_NAMES, Format, all_formats, quantize

MEDIUM, HIGH = 0.03, 0.25
"""Shares of the small index that a sum loses. 3 % is about six bits left of it: training goes on; a
quarter and more means two bits and less, which no optimizer averages out."""
_SCALES = range(25)  # loss scales 2^0 … 2^24; GradScaler starts at 2^16


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing to do and what is then still lost."""

    name: str
    action: Text
    lost: float
    """Share of the small index, or of the flushed values, that is still lost."""
    before: float
    how: Text


_PAIR = Text(
    "sum of the largest and the smallest index, against fp64", "最大与最小下标之和，与 fp64 比较"
)
_FLUSH = Text("flushed values, counted", "下溢为零的数值，计数")


def imbalance_remedies(large: torch.Tensor, small: torch.Tensor) -> tuple[Remedy, ...]:
    """For an axis whose small index is lost, from the cheapest on."""
    known = all_formats()
    bf16, fp16 = known["bf16"], known["fp16"]
    before = share_lost(large, small, add_in_format(bf16))
    found = [
        Remedy(
            "other format", Text("use fp16 instead of bf16 here", "此处用 FP16 代替 BF16"),
            share_lost(large, small, add_in_format(fp16)), before, _PAIR,
        ),
        Remedy(
            "reduce in fp32", Text("reduce in FP32", "reduce时建议用FP32"),
            share_lost(large, small, add_in_fp32), before, _PAIR,
        ),
        Remedy(
            "scale per axis",
            Text("divide each index by its own power of two before the cast",
                 "转换前将每个下标除以各自的 2 的幂"),
            _scaled_loss(large, small, bf16), before, _PAIR,
        ),
    ]  # fmt: skip
    return tuple(found)


def _scaled_loss(large: torch.Tensor, small: torch.Tensor, format: Format) -> float:
    scales = [2.0 ** -math.frexp(float(part.abs().max()) or 1.0)[1] for part in (large, small)]
    return share_lost(large * scales[0], small * scales[1], add_in_format(format))


def flush_remedy(distribution: Distribution) -> Remedy | None:
    """The loss scale that flushes least without overflow; None where fp16 flushes nothing."""
    flush = np.array([FP16.flushes_at * 2.0**-shift for shift in _SCALES], np.float32)
    flushed = distribution.count_up_to(flush, settle=False) / max(distribution.nonzero, 1)
    if flushed[0] == 0:
        return None
    safe = [i for i in _SCALES if distribution.largest * 2.0**i < FP16.near_overflow]
    best = min(safe or [0], key=lambda i: (round(float(flushed[i]), 6), i))
    return Remedy(
        "loss scale",
        Text(f"scale by 2^{best} before the cast to fp16", f"转换为 FP16 前乘以 2^{best}"),
        float(flushed[best]), float(flushed[0]), _FLUSH,
    )  # fmt: skip


def granularity_remedy(rows: torch.Tensor, format: Format, largest: float) -> Remedy | None:
    """The coarsest granularity that flushes at most a tenth of what the usual one does."""
    said = Text("", "")
    usual = measure_matrix(rows, format, format.granularity, format.scale, said, largest)
    if usual.flushed < 0.001:  # one value in a thousand: nothing to gain
        return None
    for granularity in format.granularities[1:]:
        made = quantize(rows, format, granularity)
        nonzero = (rows != 0) & rows.isfinite()
        flushed = float((nonzero & (made.stored == 0)).sum()) / max(float(nonzero.sum()), 1.0)
        if flushed <= 0.1 * usual.flushed:
            return Remedy(
                "granularity",
                Text(f"{format.name} with a scale per {GRANULARITY_NAMES[granularity].en}",
                     f"{format.name} 按{GRANULARITY_NAMES[granularity].zh}缩放"),
                flushed, usual.flushed, _FLUSH,
            )  # fmt: skip
    return None
