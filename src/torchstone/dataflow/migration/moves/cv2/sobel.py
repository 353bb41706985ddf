"""cv2.Sobel and cv2.Scharr: integer sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._derivatives import separable, sobel_kernels
from torchstone.dataflow.migration.moves.cv2._images import (
    BORDER_DEFAULT,
    CV_8U,
    CV_16S,
    CV_32F,
    CV_64F,
    not_an_image,
    random_image,
    to_uint8,
    unsupported,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call

_DEPTHS = {
    -1: torch.uint8,
    CV_8U: torch.uint8,
    CV_16S: torch.int16,
    CV_32F: torch.float32,
    CV_64F: torch.float64,
}
BORDERS = (0, 1, 2, 4)


def sobel_case(
    src: Any, ddepth: int, dx: int, dy: int, dst: Any = None, ksize: int = 3, scale: float = 1, delta: float = 0,
    borderType: int = BORDER_DEFAULT,
) -> Case | Refusal:  # fmt: skip
    if refused := not_an_image(src):
        return refused
    if ddepth not in _DEPTHS:
        return unsupported("ddepth", ddepth)
    if scale != 1 or delta != 0:
        return unsupported("scale or delta", (scale, delta))
    if (
        ksize not in (-1, 1, 3, 5, 7)
        or (ksize == -1 and dx + dy != 1)
        or max(dx, dy) > 2
        or dx + dy == 0
    ):
        return unsupported("ksize, dx, dy", (ksize, dx, dy))
    if (ksize in (1, 3) and max(dx, dy) > 2) or (ksize > 1 and max(dx, dy) >= ksize):
        return unsupported("ksize, dx, dy", (ksize, dx, dy))
    if borderType & ~16 not in BORDERS:
        return unsupported("borderType", borderType)
    return Case("uint8")


def sobel(
    src: Tensor,
    ddepth: int,
    dx: int,
    dy: int,
    ksize: int,
    scale: float,
    delta: float,
    borderType: int,
) -> Tensor:
    total = separable(src.int(), *sobel_kernels(dx, dy, ksize), borderType)
    kind = _DEPTHS[ddepth]
    if kind == torch.uint8:
        return to_uint8(total)
    return total.clamp(-32768, 32767).to(kind) if kind == torch.int16 else total.to(kind)


def scharr_case(
    src: Any, ddepth: int, dx: int, dy: int, dst: Any = None, scale: float = 1, delta: float = 0,
    borderType: int = BORDER_DEFAULT,
) -> Case | Refusal:  # fmt: skip
    return sobel_case(src, ddepth, dx, dy, dst, -1, scale, delta, borderType)


def scharr(
    src: Tensor, ddepth: int, dx: int, dy: int, scale: float, delta: float, borderType: int
) -> Tensor:
    return sobel(src, ddepth, dx, dy, -1, scale, delta, borderType)


def sobel_sample(rng: np.random.Generator) -> Call:
    image = random_image(rng, (1, 3))
    depth = int(rng.choice(list(_DEPTHS)))
    ksize = int(rng.choice([1, 3, 3, 5, 7]))
    orders = [(1, 0), (0, 1), (1, 1), (2, 0), (0, 2)][int(rng.integers(5))]
    if rng.integers(2):
        return call(image, depth, *orders, ksize=ksize)
    return call(image, depth, *orders, ksize=ksize, borderType=int(rng.choice(BORDERS)))


def scharr_sample(rng: np.random.Generator) -> Call:
    orders = [(1, 0), (0, 1)][int(rng.integers(2))]
    return call(random_image(rng, (1, 3)), int(rng.choice(list(_DEPTHS))), *orders)


MOVES = (
    OpSpec("cv2.Sobel", sobel_case, sobel_sample, sobel, {"src": "image"}, batched=True),
    OpSpec("cv2.Scharr", scharr_case, scharr_sample, scharr, {"src": "image"}, batched=True),
)
