"""cv2.equalizeHist, cv2.normalize and cv2.LUT."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._images import (
    CV_32F,
    not_an_image,
    random_image,
    to_uint8,
    unsupported,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call

NORM_INF, NORM_L1, NORM_L2, NORM_MINMAX = 1, 2, 4, 32


def equalize_case(src: Any, dst: Any = None) -> Case | Refusal:
    return not_an_image(src, channels=(1,)) or Case("uint8")


def equalize_hist(src: Tensor) -> Tensor:
    counts = torch.bincount(src.flatten().long(), minlength=256)
    present = counts.nonzero()
    first = int(present[0])
    if len(present) == 1:
        return src.clone()
    scale = np.float32(255) / np.float32(src.numel() - int(counts[first]))
    sums = counts.cumsum(0) - counts[first]
    table = to_uint8(sums.float() * float(scale))
    table[: first + 1] = 0
    return table[src.long()]


def normalize_case(
    src: Any, dst: Any, alpha: float = 1, beta: float = 0, norm_type: int = NORM_L2, dtype: int = -1, mask: Any = None
) -> Case | Refusal:  # fmt: skip
    if refused := not_an_image(src, "uint8 float32"):
        return refused
    if mask is not None:
        return unsupported("mask", "an array")
    if norm_type not in (NORM_MINMAX, NORM_INF, NORM_L1, NORM_L2):
        return unsupported("norm_type", norm_type)
    if dtype not in (-1, 0, CV_32F) or (str(src.dtype) == "float32" and dtype == 0):
        return unsupported("dtype", dtype)
    if str(src.dtype) == "uint8" and dtype in (-1, 0):
        return Case("uint8") if norm_type != NORM_L2 else Case("uint8, L2", 1)
    return Case("float32", 0, 1e-6)


def normalize(
    src: Tensor, alpha: float, beta: float, norm_type: int, dtype: int, mask: None
) -> Tensor:
    """Every image by its own extremes or its own norm; nothing is read back from the device."""
    values = src.double()
    flat = values.flatten(1)
    if norm_type == NORM_MINMAX:
        low, high = min(alpha, beta), max(alpha, beta)
        least, most = torch.aminmax(flat, dim=1)
        scale = _inverse(most - least) * (high - low)
        shift = low - least * scale
    else:
        size = {
            NORM_INF: lambda: flat.abs().amax(1),
            NORM_L1: lambda: flat.abs().sum(1),
            NORM_L2: lambda: (flat * flat).sum(1).sqrt(),
        }[norm_type]()
        # alpha / size is rounded once, alpha * (1 / size) twice
        scale = torch.where(size > _SMALLEST, alpha / size, 0.0)
        shift = torch.zeros_like(scale)
    scale, shift = torch.stack((scale, shift)).float().double()[:, :, None, None, None]
    # one rounding, as a fused multiply-add has
    result = (values * scale + shift).float()
    return result if src.dtype == torch.float32 or dtype == CV_32F else to_uint8(result)


_SMALLEST = float(np.finfo(np.float64).eps)
"""OpenCV takes what is not larger for nothing."""


def _inverse(value: Tensor) -> Tensor:
    return torch.where(value > _SMALLEST, 1 / value, 0.0)


def lut_case(src: Any, lut: Any, dst: Any = None) -> Case | Refusal:
    if refused := not_an_image(src):
        return refused
    if (
        not isinstance(lut, np.ndarray)
        or lut.size != 256
        or str(lut.dtype) not in ("uint8", "float32", "int16", "int32")
    ):
        return unsupported("lut", getattr(lut, "shape", lut))
    return Case("any")


def look_up(src: Tensor, lut: Tensor) -> Tensor:
    return lut.flatten()[src.long()]


def equalize_sample(rng: np.random.Generator) -> Call:
    return call(random_image(rng, (1,)))


def normalize_sample(rng: np.random.Generator) -> Call:
    image = random_image(rng, (1, 3), str(rng.choice(["uint8", "uint8", "float32"])))
    kind = int(rng.choice([NORM_MINMAX, NORM_MINMAX, NORM_INF, NORM_L1, NORM_L2]))
    depth = int(rng.choice([-1, -1, CV_32F]))
    return call(image, None, float(rng.integers(0, 256)), float(rng.integers(0, 256)), kind, depth)


def lut_sample(rng: np.random.Generator) -> Call:
    table = rng.integers(0, 256, 256).astype(
        str(rng.choice(["uint8", "uint8", "float32", "int32"]))
    )
    return call(random_image(rng, (1, 3, 4)), table)


MOVES = (
    OpSpec("cv2.equalizeHist", equalize_case, equalize_sample, equalize_hist, {"src": "image"}),
    OpSpec(
        "cv2.normalize", normalize_case, normalize_sample, normalize, {"src": "image"}, batched=True
    ),
    OpSpec(
        "cv2.LUT", lut_case, lut_sample, look_up, {"src": "image", "lut": "array"}, batched=True
    ),
)
