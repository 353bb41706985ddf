"""cv2.threshold with Otsu and Triangle, and cv2.adaptiveThreshold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._derivatives import separable
from torchstone.dataflow.migration.moves.cv2._fixed_blur import gaussian_kernel
from torchstone.dataflow.migration.moves.cv2._images import (
    BORDER_REPLICATE,
    not_an_image,
    random_image,
    unsupported,
)
from torchstone.dataflow.migration.moves.cv2.blur import box_filter
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call

BINARY, BINARY_INV, TRUNC, TOZERO, TOZERO_INV = range(5)
OTSU, TRIANGLE = 8, 16
GAUSSIAN = 1


def case(src: Any, thresh: float, maxval: float, type: int, dst: Any = None) -> Case | Refusal:
    automatic = type & (OTSU | TRIANGLE)
    if refused := not_an_image(
        src, "uint8" if automatic else "uint8 float32", (1,) if automatic else (1, 2, 3, 4)
    ):
        return refused
    if type & 7 not in range(5) or type & ~(7 | OTSU) or (automatic and automatic != OTSU):
        return unsupported("type", type)
    if str(src.dtype) == "uint8" and not automatic and not 0 <= math.floor(thresh) < 255:
        return unsupported("thresh", thresh)
    return Case("Otsu" if automatic else str(src.dtype))


def threshold(src: Tensor, thresh: float, maxval: float, type: int) -> tuple[float, Tensor]:
    if type & OTSU:
        thresh = otsu(src)
    if src.dtype == torch.uint8:
        thresh = float(math.floor(thresh))
        maxval = min(max(int(np.rint(maxval)), 0), 255)
    else:
        maxval = float(np.float32(maxval))
    limit = thresh if src.dtype == torch.uint8 else float(np.float32(thresh))
    above = src > limit
    zero = torch.zeros_like(src)
    kind = type & 7
    if kind == BINARY:
        result = torch.where(above, torch.full_like(src, maxval), zero)
    elif kind == BINARY_INV:
        result = torch.where(above, zero, torch.full_like(src, maxval))
    elif kind == TRUNC:
        result = torch.where(above, torch.full_like(src, limit), src)
    else:
        result = torch.where(above if kind == TOZERO else ~above, src, zero)
    return float(thresh), result


def otsu(src: Tensor) -> float:
    """The level that parts the histogram best, summed in OpenCV's order."""
    counts = torch.bincount(src.flatten().long(), minlength=256).cpu().numpy()
    scale = 1.0 / src.numel()
    mean = float(np.add.accumulate(np.arange(256.0) * counts)[-1]) * scale
    below = weight = best = 0.0
    level = 0
    epsilon = float(np.finfo(np.float32).eps)
    for index in range(256):
        share = counts[index] * scale
        below *= weight
        weight += share
        rest = 1.0 - weight
        if min(weight, rest) < epsilon or max(weight, rest) > 1.0 - epsilon:
            continue
        below = (below + index * share) / weight
        above = (mean - weight * below) / rest
        between = weight * rest * (below - above) * (below - above)
        if between > best:
            best, level = between, index
    return float(level)


def adaptive_case(
    src: Any, maxValue: float, adaptiveMethod: int, thresholdType: int, blockSize: int, C: float, dst: Any = None
) -> Case | Refusal:  # fmt: skip
    if refused := not_an_image(src, channels=(1,)):
        return refused
    if adaptiveMethod == GAUSSIAN and blockSize not in (3, 5, 7):
        return unsupported(
            "blockSize", "a Gaussian of more than 7, whose weights are no binary fractions"
        )
    if thresholdType not in (BINARY, BINARY_INV):
        return unsupported("thresholdType", thresholdType)
    if adaptiveMethod != GAUSSIAN and blockSize > 15:  # such a mean is within one, not exact
        return unsupported("blockSize", blockSize)
    return Case("uint8, Gaussian" if adaptiveMethod == GAUSSIAN else "uint8, mean")


def adaptive_threshold(
    src: Tensor, maxValue: float, adaptiveMethod: int, thresholdType: int, blockSize: int, C: float
) -> Tensor:  # fmt: skip
    if maxValue < 0:
        return torch.zeros_like(src)
    if adaptiveMethod == GAUSSIAN:
        mean = _gaussian_mean(src, blockSize)
    else:
        mean = box_filter(src, -1, (blockSize, blockSize), (-1, -1), True, BORDER_REPLICATE).int()
    full = min(max(int(np.rint(maxValue)), 0), 255)
    if thresholdType == BINARY:
        hit = src.int() - mean > -math.ceil(C)
    else:
        hit = src.int() - mean <= -math.floor(C)
    return torch.where(hit, torch.full_like(src, full), torch.zeros_like(src))


def _gaussian_mean(src: Tensor, size: int) -> Tensor:
    """The weights of small kernels are fractions of 256: float32 sums are exact, and so are ints."""
    weights = [int(weight) for weight in gaussian_kernel(size, 0.0) * 256]
    total = separable(src.int(), weights, weights, BORDER_REPLICATE)
    return (total.double() / 65536).round().int()


def sample(rng: np.random.Generator) -> Call:
    automatic = bool(rng.integers(2))
    image = random_image(
        rng,
        (1,) if automatic else (1, 3),
        "uint8" if automatic else str(rng.choice(["uint8", "float32"])),
    )
    kind = int(rng.integers(5))
    if automatic:
        return call(image, 0, 255, kind + OTSU)
    top = 254 if image.dtype == np.uint8 else 1
    level = float(rng.uniform(0, top)) if rng.integers(2) else int(rng.integers(top + 1))
    return call(image, level, float(rng.uniform(0, 300)), kind)


def adaptive_sample(rng: np.random.Generator) -> Call:
    image = random_image(rng, (1,))
    method = int(rng.integers(2))
    block = int(rng.choice([3, 5, 7])) if method == GAUSSIAN else int(rng.integers(1, 8)) * 2 + 1
    kind, level = int(rng.integers(2)), float(rng.uniform(-9, 9))
    return call(image, float(rng.uniform(0, 300)), method, kind, block, level)


MOVES = (
    OpSpec("cv2.threshold", case, sample, threshold, {"src": "image"}, ("value", "image")),
    OpSpec(
        "cv2.adaptiveThreshold", adaptive_case, adaptive_sample, adaptive_threshold, {"src": "image"}, batched=True
    ),
)  # fmt: skip
