"""cv2.add, subtract, multiply, absdiff, addWeighted, bitwise_not, split and merge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._images import (
    image_of,
    not_an_image,
    random_image,
    to_uint8,
    unsupported,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call

_DTYPES = "uint8 int16 float32"


def _pair_case(src1: Any, src2: Any, mask: Any, dtype: int) -> Case | Refusal:
    if refused := not_an_image(src1, _DTYPES) or not_an_image(src2, _DTYPES):
        return refused
    if src1.shape != src2.shape or src1.dtype != src2.dtype:
        return unsupported("src2", "another shape or dtype, or a number")
    if src1.ndim == 2 and src1.shape in ((4, 1), (1, 1)):
        return unsupported("src2", "an array that may be meant as a number")
    if mask is not None or dtype != -1:
        return unsupported("mask or dtype", dtype)
    return Case(str(src1.dtype))


def add_case(
    src1: Any, src2: Any, dst: Any = None, mask: Any = None, dtype: int = -1
) -> Case | Refusal:
    return _pair_case(src1, src2, mask, dtype)


def multiply_case(
    src1: Any, src2: Any, dst: Any = None, scale: float = 1, dtype: int = -1
) -> Case | Refusal:
    if scale != 1:
        return unsupported("scale", scale)
    return _pair_case(src1, src2, None, dtype)


def absdiff_case(src1: Any, src2: Any, dst: Any = None) -> Case | Refusal:
    return _pair_case(src1, src2, None, -1)


def weighted_case(
    src1: Any, alpha: float, src2: Any, beta: float, gamma: float, dst: Any = None, dtype: int = -1
) -> Case | Refusal:  # fmt: skip
    case = _pair_case(src1, src2, None, dtype)
    if isinstance(case, Case):
        return {
            "uint8": Case("uint8"),
            "float32": Case("float32", 0, 1e-6),
        }.get(case.name) or unsupported("dtype", case.name)
    return case


def add(src1: Tensor, src2: Tensor, mask: None, dtype: int) -> Tensor:
    return _saturated(_wide(src1) + _wide(src2), src1.dtype)


def subtract(src1: Tensor, src2: Tensor, mask: None, dtype: int) -> Tensor:
    return _saturated(_wide(src1) - _wide(src2), src1.dtype)


def multiply(src1: Tensor, src2: Tensor, scale: float, dtype: int) -> Tensor:
    return _saturated(_wide(src1) * _wide(src2), src1.dtype)


def absdiff(src1: Tensor, src2: Tensor) -> Tensor:
    return _saturated((_wide(src1) - _wide(src2)).abs(), src1.dtype)


def add_weighted(
    src1: Tensor, alpha: float, src2: Tensor, beta: float, gamma: float, dtype: int
) -> Tensor:
    if src1.dtype == torch.float32:
        return (src1.double() * alpha + src2.double() * beta + gamma).float()
    a, b, c = (np.float32(item).item() for item in (alpha, beta, gamma))
    return to_uint8((src1.double() * a + (src2.double() * b + c).float().double()).float())


def _wide(image: Tensor) -> Tensor:
    return image if image.is_floating_point() else image.int()


def _saturated(values: Tensor, dtype: torch.dtype) -> Tensor:
    if dtype == torch.float32:
        return values
    limits = torch.iinfo(dtype)
    return values.clamp(limits.min, limits.max).to(dtype)


def not_case(src: Any, dst: Any = None, mask: Any = None) -> Case | Refusal:
    if mask is not None:
        return unsupported("mask", "an array")
    return not_an_image(src) or Case("uint8")


def bitwise_not(src: Tensor, mask: None) -> Tensor:
    return 255 - src


def split_case(m: Any, mv: Any = None) -> Case | Refusal:
    if mv is not None:
        return unsupported("mv", "a list for the result")
    return not_an_image(m, "uint8 int16 int32 float32 float64") or Case("any")


def split(m: Tensor, mv: None) -> Sequence[Tensor]:
    return [m[:, index : index + 1] for index in range(m.shape[1])]


def merge_case(mv: Any, dst: Any = None) -> Case | Refusal:
    if not isinstance(mv, list | tuple) or not 1 <= len(mv) <= 4:
        return unsupported("mv", type(mv).__name__)
    for item in mv:
        if refused := not_an_image(item, "uint8 int16 int32 float32 float64", (1,)):
            return refused
        if item.shape != mv[0].shape or item.dtype != mv[0].dtype:
            return unsupported("mv", "planes of different shapes or dtypes")
    return Case("any")


def merge(mv: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(mv), 1)


def _pair(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    dtype = str(rng.choice(["uint8", "uint8", "int16", "float32"]))
    height, width = (int(size) for size in rng.integers(2, 48, 2))
    channels = int(rng.choice([1, 3]))
    return image_of(rng, height, width, channels, dtype), image_of(
        rng, height, width, channels, dtype
    )


def pair_sample(rng: np.random.Generator) -> Call:
    return call(*_pair(rng))


def weighted_sample(rng: np.random.Generator) -> Call:
    one, other = _pair(rng)
    return call(
        one,
        float(rng.uniform(-1, 2)),
        other,
        float(rng.uniform(-1, 2)),
        float(rng.uniform(-50, 50)),
    )


def one_sample(rng: np.random.Generator) -> Call:
    return call(random_image(rng, (1, 3, 4)))


def merge_sample(rng: np.random.Generator) -> Call:
    height, width = (int(size) for size in rng.integers(2, 48, 2))
    return call([image_of(rng, height, width, 1) for _ in range(int(rng.integers(2, 5)))])


_TWO = {"src1": "image", "src2": "image"}
MOVES = (
    OpSpec("cv2.add", add_case, pair_sample, add, _TWO),
    OpSpec("cv2.subtract", add_case, pair_sample, subtract, _TWO),
    OpSpec("cv2.multiply", multiply_case, pair_sample, multiply, _TWO),
    OpSpec("cv2.absdiff", absdiff_case, pair_sample, absdiff, _TWO),
    OpSpec("cv2.addWeighted", weighted_case, weighted_sample, add_weighted, _TWO),
    OpSpec("cv2.bitwise_not", not_case, one_sample, bitwise_not, {"src": "image"}, batched=True),
    OpSpec("cv2.split", split_case, one_sample, split, {"m": "image"}, "images"),
    OpSpec("cv2.merge", merge_case, merge_sample, merge, {"mv": "images"}),
)
