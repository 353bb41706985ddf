"""cv2.bilateralFilter of uint8 images: weights of place and colour, in float32.

OpenCV adds them up with vector instructions in an order of its own; the result is within one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._images import (
    BORDER_DEFAULT,
    not_an_image,
    pad,
    random_image,
    to_uint8,
    unsupported,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call

BORDERS = (0, 1, 2, 4)
_LARGEST = 15


def case(
    src: Any,
    d: int,
    sigmaColor: float,
    sigmaSpace: float,
    dst: Any = None,
    borderType: int = BORDER_DEFAULT,
) -> Case | Refusal:
    if refused := not_an_image(src, channels=(1, 3)):
        return refused
    if borderType not in BORDERS:
        return unsupported("borderType", borderType)
    if _radius(d, sigmaSpace) > _LARGEST:
        return unsupported("d", f"{d}, a neighbourhood of more than {2 * _LARGEST + 1} pixels")
    return Case("uint8", 1)


def _radius(d: int, sigma: float) -> int:
    wide = sigma if sigma > 0 else 1.0
    return max(int(np.rint(wide * 1.5)) if d <= 0 else d // 2, 1)


def bilateral(src: Tensor, d: int, sigmaColor: float, sigmaSpace: float, borderType: int) -> Tensor:
    colour, space = (sigma if sigma > 0 else 1.0 for sigma in (sigmaColor, sigmaSpace))
    radius = _radius(d, sigmaSpace)
    steps = torch.arange(256 * src.shape[1], dtype=torch.float64)
    weights = torch.exp(steps * steps * (-0.5 / (colour * colour))).float().to(src.device)
    padded = pad(src.int(), radius, radius, radius, radius, borderType)
    height, width = src.shape[-2:]
    centre = src.int()
    total = torch.zeros(src.shape, dtype=torch.float32, device=src.device)
    share = torch.zeros_like(total[:, :1])
    for row in range(-radius, radius + 1):
        for column in range(-radius, radius + 1):
            if math.sqrt(row * row + column * column) > radius:
                continue
            place = np.float32(
                math.exp((row * row + column * column) * (-0.5 / (space * space)))
            ).item()
            top, left = row + radius, column + radius
            there = padded[..., top : top + height, left : left + width]
            apart = (there - centre).abs().sum(1, keepdim=True)
            weight = weights[apart.long()] * place
            share = share + weight
            total = total + there * weight
    return to_uint8(total / share)


def sample(rng: np.random.Generator) -> Call:
    image = random_image(rng, (1, 3), largest=32)
    sigmas = (float(rng.uniform(5, 150)), float(rng.uniform(0.5, 6)))
    if rng.integers(2):
        return call(image, int(rng.choice([3, 5, 7, 9])), *sigmas)
    return call(image, -1, *sigmas, borderType=int(rng.choice(BORDERS)))


MOVES = (OpSpec("cv2.bilateralFilter", case, sample, bilateral, {"src": "image"}, batched=True),)
