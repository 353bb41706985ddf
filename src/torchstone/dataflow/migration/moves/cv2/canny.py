"""cv2.Canny: integer gradients, suppression with a 15-bit tangent, edges grown until none is added."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from torchstone.dataflow.migration.moves.cv2._derivatives import separable, sobel_kernels
from torchstone.dataflow.migration.moves.cv2._images import (
    BORDER_REPLICATE,
    not_an_image,
    random_image,
    unsupported,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call

_TANGENT = 13573  # tan(22.5°) in 15 bits


def case(
    image: Any, threshold1: float, threshold2: float, edges: Any = None, apertureSize: int = 3,
    L2gradient: bool = False,
) -> Case | Refusal:  # fmt: skip
    if refused := not_an_image(image, channels=(1, 3)):
        return refused
    if apertureSize not in (3, 5):
        return unsupported("apertureSize", apertureSize)
    if edges is not None:
        return unsupported("edges", "an array for the result")
    if L2gradient and _ipp_computes():
        return unsupported("L2gradient", "IPP's own Canny, used where cv2 has one thread")
    return Case("uint8, L2" if L2gradient else "uint8")


def _ipp_computes() -> bool:
    cv2 = sys.modules.get("cv2")
    return cv2 is not None and cv2.ipp.useIPP() and cv2.getNumThreads() <= 1


def canny(
    image: Tensor, threshold1: float, threshold2: float, edges: None, apertureSize: int, L2gradient: bool
) -> Tensor:  # fmt: skip
    low, high = sorted((float(threshold1), float(threshold2)))
    values = image.int()
    x = separable(values, *sobel_kernels(1, 0, apertureSize), BORDER_REPLICATE)
    y = separable(values, *sobel_kernels(0, 1, apertureSize), BORDER_REPLICATE)
    x, y = (item.clamp(-32768, 32767).long() for item in (x, y))
    if L2gradient:
        low, high = min(32767.0, low), min(32767.0, high)
        low, high = (item * item if item > 0 else item for item in (low, high))
        size = x * x + y * y
    else:
        size = x.abs() + y.abs()
    if image.shape[1] > 1:  # the channel with the strongest gradient, the first of equals
        index = size.argmax(1, keepdim=True)
        x, y, size = (item.gather(1, index) for item in (x, y, size))
    weak, strong = _candidates(x, y, size, math.floor(low), math.floor(high))
    return _grown(weak, strong).to(torch.uint8) * 255


def _candidates(x: Tensor, y: Tensor, size: Tensor, low: int, high: int) -> tuple[Tensor, Tensor]:
    """Local maxima across the edge above each threshold."""
    around = F.pad(size, (1, 1, 1, 1))
    height, width = size.shape[-2:]

    def at(row: int, column: int) -> Tensor:
        return around[..., 1 + row : 1 + row + height, 1 + column : 1 + column + width]

    ax, ay = x.abs(), y.abs() << 15
    tangent = ax * _TANGENT
    steep = tangent + (ax << 16)
    horizontal = (size > at(0, -1)) & (size >= at(0, 1))
    vertical = (size > at(-1, 0)) & (size >= at(1, 0))
    falling = (x ^ y) < 0
    diagonal = torch.where(
        falling, (size > at(-1, 1)) & (size > at(1, -1)), (size > at(-1, -1)) & (size > at(1, 1))
    )
    peak = torch.where(ay < tangent, horizontal, torch.where(ay > steep, vertical, diagonal))
    weak = peak & (size > low)
    return weak, weak & (size > high)


def _grown(weak: Tensor, strong: Tensor) -> Tensor:
    """Strong edges and the weak ones that touch them."""
    edges = strong
    while True:
        reach = F.max_pool2d(edges.float(), 3, 1, 1) > 0
        grown = edges | (reach & weak)
        if torch.equal(grown, edges):
            return edges
        edges = grown


def sample(rng: np.random.Generator) -> Call:
    image = random_image(rng, (1, 1, 3))
    low, high = (float(value) for value in rng.uniform(0, 400, 2))
    if rng.integers(2):
        return call(image, low, high)
    return call(
        image, low, high, apertureSize=int(rng.choice([3, 5])), L2gradient=bool(rng.integers(2))
    )


MOVES = (OpSpec("cv2.Canny", case, sample, canny, {"image": "image"}),)
