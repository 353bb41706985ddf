"""Functions of torch: tensors move, the function is the same, and results come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from torchstone.dataflow.migration.specification import (
    Call,
    Case,
    OpSpec,
    Refusal,
    Sample,
    call,
    refuse,
)

ROUNDING = 1e-5
"""Devices sum in different orders; relative to the largest value."""
_TYPES = (
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.float16,
    torch.float32,
    torch.float64,
)


def copying_case(*args: Any, **kwargs: Any) -> Case | Refusal:
    """Of functions that put values elsewhere and compute nothing: equal in every bit."""
    judged = case(*args, **kwargs)
    return judged if isinstance(judged, Refusal) else Case(judged.name)


def case(*args: Any, **kwargs: Any) -> Case | Refusal:
    tensors = list(_tensors((args, kwargs)))
    if not tensors:
        return refuse("no tensor among the arguments", "参数中没有张量")
    if any(tensor.requires_grad for tensor in tensors):
        return refuse(
            "an argument requires gradients", "有参数需要梯度",
            "call it under torch.no_grad() if no gradient is wanted", "若不需要梯度，请在 torch.no_grad() 下调用",
        )  # fmt: skip
    if "out" in kwargs or kwargs.get("inplace"):
        return refuse(
            "it writes into an argument",
            "会写入某个参数",
            "use the result instead of out=",
            "请使用返回值而非 out=",
        )
    kinds = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in tensors})
    exact = not any(tensor.is_floating_point() or tensor.is_complex() for tensor in tensors)
    return Case(" ".join(kinds), 0.0, 0.0 if exact else ROUNDING)


def _tensors(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _floats(rng: np.random.Generator, *shape: int) -> torch.Tensor:
    return torch.from_numpy(rng.standard_normal(shape).astype(np.float32))


def _images(rng: np.random.Generator) -> torch.Tensor:
    return _floats(
        rng, int(rng.integers(1, 3)), 3, int(rng.integers(4, 24)), int(rng.integers(4, 24))
    )


def _with(make: Callable[[np.random.Generator], torch.Tensor], *args: Any, **kwargs: Any) -> Sample:
    def sample(rng: np.random.Generator) -> Call:
        return call(make(rng), *args, **kwargs)

    return sample


def _sample_convolution(rng: np.random.Generator) -> Call:
    return call(_images(rng), _floats(rng, 4, 3, 3, 3), padding=1)


def _sample_grid(rng: np.random.Generator) -> Call:
    image = _images(rng)
    return call(
        image,
        torch.rand(len(image), 5, 7, 2, generator=torch.Generator().manual_seed(0)) * 2 - 1,
        align_corners=False,
    )


def _sample_matrices(rng: np.random.Generator) -> Call:
    inner = int(rng.integers(1, 16))
    return call(_floats(rng, 5, inner), _floats(rng, inner, 6))


def _sample_pair(rng: np.random.Generator) -> Call:
    return call(_floats(rng, 5, 7), _floats(rng, 5, 7))


def _any_values(rng: np.random.Generator) -> torch.Tensor:
    """Of one of the types that samples of a data set have."""
    return torch.from_numpy(rng.integers(0, 256, (1, 3, 6, 8))).to(
        _TYPES[rng.integers(len(_TYPES))]
    )


def _sample_list(rng: np.random.Generator) -> Call:
    first = _any_values(rng)
    return call([first, first.flip(0, 3)])


def _sample_stft(rng: np.random.Generator) -> Call:
    return call(_floats(rng, 2, 400), 64, window=torch.hann_window(64), return_complex=True)


_SAMPLES: dict[str, Sample] = {
    "torch.nn.functional.interpolate": _with(_images, scale_factor=2.0, mode="bilinear", align_corners=False),
    "torch.nn.functional.conv2d": _sample_convolution,
    "torch.nn.functional.grid_sample": _sample_grid,
    "torch.nn.functional.avg_pool2d": _with(_images, 2),
    "torch.nn.functional.max_pool2d": _with(_images, 2),
    "torch.nn.functional.adaptive_avg_pool2d": _with(_images, 3),
    "torch.nn.functional.normalize": _with(_images, dim=1),
    "torch.nn.functional.softmax": _with(_images, dim=1),
    "torch.matmul": _sample_matrices,
    "torch.mm": _sample_matrices,
    "torch.add": _sample_pair,
    "torch.sub": _sample_pair,
    "torch.mul": _sample_pair,
    "torch.div": _sample_pair,
    "torch.clamp": _with(_images, -0.5, 0.5),
    "torch.stft": _sample_stft,
    "torch.fft.rfft": _with(_images),
    "torch.fft.fft2": _with(_images),
    "torch.mean": _with(_images, dim=(-2, -1)),
    "torch.sum": _with(_images, dim=(-2, -1)),
    "torch.std": _with(_images, dim=(-2, -1)),
    "torch.exp": _with(_images),
    "torch.sqrt": _with(lambda rng: _images(rng).abs()),
    "torch.abs": _with(_images),
}  # fmt: skip

_COPYING: dict[str, Sample] = {
    "torch.nn.functional.pad": _with(_any_values, (1, 2, 3, 0)),
    "torch.stack": _sample_list,
    "torch.cat": _sample_list,
    "torch.flip": _with(_any_values, (-1,)),
    "torch.rot90": _with(_any_values, 1, (-2, -1)),
}

MOVES = tuple(
    OpSpec(name, judge, sample, output="tensors", strategy="MoveOnly")
    for judge, samples in ((case, _SAMPLES), (copying_case, _COPYING))
    for name, sample in samples.items()
)
