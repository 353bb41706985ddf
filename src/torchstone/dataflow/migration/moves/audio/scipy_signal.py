"""scipy.signal: convolution and resampling by Fourier transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.audio._signals import not_a_signal, random_signal, rounding
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call, refuse


def convolve_case(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Case | Refusal:
    if refused := not_a_signal(in1) or not_a_signal(in2):
        return refused
    if mode not in ("full", "same", "valid") or in1.ndim != in2.ndim or in1.dtype != in2.dtype:
        return refuse("signals of different dtypes or dimensions", "信号 dtype 或维数不同")
    if mode == "valid" and any(a < b for a, b in zip(in1.shape, in2.shape, strict=True)):
        return refuse("a kernel longer than the signal", "核长于信号")
    return Case(f"{in1.dtype} {mode}", 0.0, rounding(in1, in2))


def fft_convolve_case(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Case | Refusal:
    if axes is not None:
        return refuse("some axes only", "仅部分轴")
    return convolve_case(in1, in2, mode)


def convolve(in1: Tensor, in2: Tensor, mode: str, method: str) -> Tensor:
    return fft_convolve(in1, in2, mode, None)


def fft_convolve(in1: Tensor, in2: Tensor, mode: str, axes: None) -> Tensor:
    axes_all = tuple(range(in1.ndim))
    sizes = tuple(a + b - 1 for a, b in zip(in1.shape, in2.shape, strict=True))
    product = torch.fft.rfftn(in1, sizes, axes_all) * torch.fft.rfftn(in2, sizes, axes_all)
    whole: Tensor = torch.fft.irfftn(product, sizes, axes_all)
    if mode == "full":
        return whole
    wanted = (
        in1.shape
        if mode == "same"
        else [a - b + 1 for a, b in zip(in1.shape, in2.shape, strict=True)]
    )
    starts = [(size - want) // 2 for size, want in zip(sizes, wanted, strict=True)]
    return whole[
        tuple(slice(start, start + want) for start, want in zip(starts, wanted, strict=True))
    ]


def resample_case(
    x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time"
) -> Case | Refusal:
    if refused := not_a_signal(x):
        return refused
    if t is not None or window is not None or domain != "time":
        return refuse("times, a window or another domain", "指定了 t、window 或 domain")
    return Case(str(x.dtype), 0.0, rounding(x))


def resample(x: Tensor, num: int, t: None, axis: int, window: None, domain: str) -> Tensor:
    values = x.movedim(axis, -1)
    count = values.shape[-1]
    spectrum = torch.fft.rfft(values)
    few = min(num, count)
    half = few // 2 + 1
    result = torch.zeros((*values.shape[:-1], num // 2 + 1), dtype=spectrum.dtype, device=x.device)
    result[..., :half] = spectrum[..., :half]
    if few % 2 == 0 and num != count:  # the middle frequency is shared by both halves
        result[..., few // 2] *= 2.0 if num < count else 0.5
    longer: Tensor = torch.fft.irfft(result, num) * (num / count)
    return longer.movedim(-1, axis)


def convolve_sample(rng: np.random.Generator) -> Call:
    signal = random_signal(rng, int(rng.integers(20, 200)))
    kernel = random_signal(rng, int(rng.integers(1, 20)), str(signal.dtype))
    return call(signal, kernel, str(rng.choice(["full", "same", "valid"])))


def resample_sample(rng: np.random.Generator) -> Call:
    return call(random_signal(rng, int(rng.integers(4, 100))), int(rng.integers(2, 120)))


_TWO = {"in1": "array", "in2": "array"}
MOVES = (
    OpSpec("scipy.signal.convolve", convolve_case, convolve_sample, convolve, _TWO, "array"),
    OpSpec(
        "scipy.signal.fftconvolve", fft_convolve_case, convolve_sample, fft_convolve, _TWO, "array"
    ),
    OpSpec(
        "scipy.signal.resample", resample_case, resample_sample, resample, {"x": "array"}, "array"
    ),
)
