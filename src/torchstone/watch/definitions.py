"""The small public pieces: an adaptive threshold, and what overflow, underflow, distortion mean.

Every share is of the value before the cast: after it, what was flushed is a zero like any other.
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.runtime.number_formats import NumberFormat, dtype_of, format_of
from torchstone.watch.learn.window import WINDOW
from torchstone.watch.record.log import log_line, show_log_lines

Format = torch.dtype | str | NumberFormat
_HISTORY = 1000
_ROUNDING = 1e-6
"""A constant series has no spread; what float32 rounds away is not a deviation from it."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """Whether values leave the range of a format, or come near it; true for either."""

    overflow: bool
    near: bool
    ratio: float
    """Share of all elements that overflow."""
    largest: float
    format: str

    def __bool__(self) -> bool:
        return self.overflow or self.near


def detect_overflow(tensor: Tensor, dtype: Format | None = None, scale: float = 1.0) -> Overflow:
    """Do the values, times `scale`, fit into the format (by default the tensor's own)?"""
    number_format = format_of(tensor.dtype if dtype is None else dtype)
    magnitude = _magnitude(tensor, scale)
    over = magnitude >= number_format.overflow_from
    finite = magnitude[magnitude.isfinite()]
    largest = float(finite.max()) if finite.numel() else 0.0
    ratio = float(over.double().mean()) if magnitude.numel() else 0.0
    near = number_format.near_overflow < largest < number_format.overflow_from
    return Overflow(bool(over.any()), near, ratio, largest, number_format.name)


def detect_underflow(tensor: Tensor, dtype: Format = torch.float16, scale: float = 1.0) -> float:
    """Share of the nonzero values that a cast to the format flushes to zero.

    NaN for a tensor that is in this format already: what was flushed cannot be seen any more.
    """
    number_format = format_of(dtype)
    if _is_narrow(tensor, number_format):
        warnings.warn(
            f"detect_underflow: the tensor is {tensor.dtype} already, and what a cast to "
            f"{number_format.name} flushed cannot be seen in it; pass the tensor before the cast",
            stacklevel=2,
        )
        return math.nan
    magnitude = _magnitude(tensor, scale)
    nonzero = magnitude > 0
    flushed = nonzero & (magnitude <= number_format.flushes_at)
    count = int(nonzero.sum())
    return int(flushed.sum()) / count if count else 0.0


def detect_distortion(
    tensor: Tensor | Mapping[str, float],
    other: Tensor | Format | Mapping[str, float] = torch.float16,
    scale: float = 1.0,
) -> float:
    """1 - cosine between the values and the same values after the cast (or in another tensor).

    Large values rule it: read it beside the flushed share. Two mappings with `mean` and `std`
    (current, baseline) are compared as distributions instead: `detect_drift`.
    """
    if isinstance(tensor, Mapping) or isinstance(other, Mapping):
        return _distortion_of_statistics(tensor, other)
    wide = tensor.detach().flatten().double()
    if isinstance(other, Tensor):
        if other.shape != tensor.shape:
            raise UsageError(
                "detect_distortion", f"shapes {tuple(tensor.shape)} and {tuple(other.shape)}",
                Text("two tensors of one shape", "形状相同的两个张量"),
                Text("pass the tensor before and after the cast", "请传入转换前后的张量"),
            )  # fmt: skip
        cast = other.detach().flatten().double()
    else:
        number_format = format_of(other)
        bounded = (wide * scale).clamp(-number_format.largest, number_format.largest)
        cast = bounded.to(dtype_of(number_format)).double() / scale
    lengths = float(wide.norm() * cast.norm())
    if lengths == 0 or not math.isfinite(lengths):
        return 0.0 if not wide.any() else (1.0 if lengths == 0 else math.nan)
    return max(0.0, 1 - float(wide @ cast) / lengths)


def _distortion_of_statistics(current: object, baseline: object) -> float:
    if not isinstance(current, Mapping) or not isinstance(baseline, Mapping):
        given = f"{type(current).__name__} and {type(baseline).__name__}"
        raise UsageError(
            "detect_distortion",
            given,
            Text(
                "two mappings with mean and std, or two tensors",
                "两个含 mean 和 std 的映射，或两个张量",
            ),
            Text("pass both in the same form", "请以同一形式传入两者"),
        )
    return detect_drift(current, baseline)


def detect_drift(current: Mapping[str, float], baseline: Mapping[str, float]) -> float:
    """How far a distribution moved: of mean and spread, in units of the usual spread."""
    try:
        spread = max(abs(float(baseline["std"])), 1e-12)
        moved = abs(float(current["mean"]) - float(baseline["mean"])) / spread
        wider = abs(math.log(max(abs(float(current["std"])), 1e-12) / spread))
    except KeyError as error:
        raise UsageError(
            "detect_drift", f"no {error.args[0]!r}",
            Text("mappings with mean and std", "含 mean 和 std 的映射"),
            Text("pass AdaptiveThreshold.baseline or the like", "例如传入 AdaptiveThreshold.baseline"),
        ) from None  # fmt: skip
    return max(moved, wider)


def _magnitude(tensor: Tensor, scale: float) -> Tensor:
    if not (scale > 0 and math.isfinite(scale)):
        raise UsageError(
            "detect", f"scale {scale}", Text("a scale above zero", "大于零的缩放"),
            Text("pass the loss scale, or leave it out", "传入 loss scale，或省略"),
        )  # fmt: skip
    if not tensor.is_floating_point():
        raise UsageError(
            "detect", str(tensor.dtype), Text("a floating tensor", "浮点张量"),
            Text("pass the values before they are quantised", "请传入量化之前的数值"),
        )  # fmt: skip
    return tensor.detach().double().abs() * scale


def _is_narrow(tensor: Tensor, number_format: NumberFormat) -> bool:
    own = format_of(tensor.dtype) if tensor.dtype != torch.float64 else None
    if own is None:
        return False
    return own.smallest_subnormal >= number_format.smallest_subnormal


class AdaptiveThreshold:
    """Learns the normal range of one number, and keeps learning.

    Before `warmup_steps` nothing is an anomaly. After it, a value is one when it is more than
    `sigma` standard deviations from the mean of the recent values, above twice their maximum, or
    below half of their (positive) minimum. The baseline rolls: frozen after the warm-up, it would
    call most healthy steps of a training run anomalies.
    """

    def __init__(self, warmup_steps: int = 100) -> None:
        if type(warmup_steps) is not int or warmup_steps < 1:
            raise UsageError(
                "AdaptiveThreshold", repr(warmup_steps),
                Text("a whole number of steps, from 1 on", "不小于 1 的整数步数"),
                Text("pass warmup_steps=100", "例如 warmup_steps=100"),
            )  # fmt: skip
        self.warmup_steps = warmup_steps
        self.step = 0
        self.history: deque[float] = deque(maxlen=_HISTORY)

    def update(self, value: float) -> None:
        """Take in one more value; those that are not finite count as steps and teach nothing."""
        self.step += 1
        value = float(value)
        if math.isfinite(value):
            self.history.append(value)
        if self.step == self.warmup_steps and (found := self.baseline) is not None:
            show_log_lines()
            log_line(f"[Monitor] Baseline established: {found}")

    @property
    def baseline(self) -> dict[str, float] | None:
        """Mean, std, max and min of the recent values; None while warming up."""
        if self.step < self.warmup_steps or not self.history:
            return None
        recent = list(self.history)[-WINDOW:]
        mean = sum(recent) / len(recent)
        variance = sum((item - mean) ** 2 for item in recent) / len(recent)
        return {"mean": mean, "std": math.sqrt(variance), "max": max(recent), "min": min(recent)}

    def is_anomaly(self, value: float, sigma: float = 3) -> bool:
        """True when the value is out of range; False while warming up."""
        baseline = self.baseline
        if baseline is None:
            return False
        value = float(value)
        if not math.isfinite(value):
            return True
        spread = max(baseline["std"], _ROUNDING * abs(baseline["mean"]))
        if abs(value - baseline["mean"]) > sigma * spread:
            return True
        low, high = baseline["min"], baseline["max"]
        return (high > 0 and value > 2 * high) or (low > 0 and value < low / 2)


__all__ = [
    "AdaptiveThreshold",
    "Overflow",
    "detect_distortion",
    "detect_drift",
    "detect_overflow",
    "detect_underflow",
]
