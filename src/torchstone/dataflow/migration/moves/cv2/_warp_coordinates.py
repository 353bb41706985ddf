"""The coordinates that cv2.warpAffine and cv2.warpPerspective read from, in OpenCV's precision."""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._images import TABLES

_BLOCK = 32


def inverse_affine(m: np.ndarray) -> np.ndarray:
    d = m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
    d = 1 / d if d else 0.0
    a, b, c, e = m[1, 1] * d, m[0, 1] * -d, m[1, 0] * -d, m[0, 0] * d
    x = -a * m[0, 2] - b * m[1, 2]
    y = -c * m[0, 2] - e * m[1, 2]
    return np.array([[a, b, x], [c, e, y]])


def inverse(m: np.ndarray) -> np.ndarray:
    """Cofactors over the determinant, in OpenCV's order."""
    (a, b, c), (d, e, f), (g, h, i) = m
    det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    if det == 0:
        return np.zeros((3, 3))
    t = 1 / det
    return np.array(
        [
            [(e * i - f * h) * t, (c * h - b * i) * t, (b * f - c * e) * t],
            [(f * g - d * i) * t, (a * i - c * g) * t, (c * d - a * f) * t],
            [(d * h - e * g) * t, (b * g - a * h) * t, (a * e - b * d) * t],
        ]
    )


def affine_fixed(m: np.ndarray, width: int, height: int, half: int, device: torch.device) -> Tensor:
    """(2, height, width) in 1/1024 of a pixel; only a row and a column go to the device."""
    across, down = np.arange(width), np.arange(height)
    steps = [_to_int(row[0] * across * 1024) for row in m]
    starts = [_to_int((row[1] * down + row[2]) * 1024) + half for row in m]
    ends = torch.from_numpy(np.concatenate([*steps, *starts])).to(device)
    step, start = ends[: 2 * width].reshape(2, 1, width), ends[2 * width :].reshape(2, height, 1)
    return start + step


@functools.lru_cache(maxsize=TABLES)
def _grid(width: int, height: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """The first column of each block, columns inside it, and rows, as OpenCV divides an image."""
    tall = min(_BLOCK // 2, height)
    wide = min(_BLOCK * _BLOCK // tall, width)
    column = np.arange(width, dtype=np.float64)
    start, rest = column // wide * wide, column % wide
    row = np.arange(height, dtype=np.float64)[:, None]
    found = [torch.from_numpy(item).to(device) for item in (start, rest, row)]
    return found[0], found[1], found[2]


def perspective_fixed(
    m: np.ndarray, width: int, height: int, scale: int, device: torch.device
) -> Tensor:
    """(2, height, width) in 1/scale of a pixel; sums are made block by block, as OpenCV makes them."""
    start, rest, row = _grid(width, height, device)
    first, second, third = torch.from_numpy(m.T.copy()).to(device)[..., None, None]
    sums = first * start + second * row + third + first * rest
    depth = sums[2]
    depth = torch.where(depth != 0, scale / depth, 0.0)
    at: Tensor = (sums[:2] * depth).clamp(-(2.0**31), 2.0**31 - 1).round().long()
    return at


def _to_int(values: np.ndarray) -> np.ndarray:
    whole: np.ndarray = np.rint(np.clip(values, -(2.0**31), 2.0**31 - 1)).astype(np.int64)
    return whole


def affine_floats(m: np.ndarray, width: int, height: int, device: torch.device) -> Tensor:
    """(2, height, width) in float32, each product added with one rounding."""
    narrow = m.astype(np.float32).astype(np.float64)
    steps = [np.arange(width) * row[0] for row in narrow]
    bases = [(np.arange(height) * row[1] + row[2]).astype(np.float32) for row in narrow]
    ends = torch.from_numpy(np.concatenate([*steps, *bases])).to(device)
    step, base = ends[: 2 * width].reshape(2, 1, width), ends[2 * width :].reshape(2, height, 1)
    return (step + base).float()


def perspective_floats(m: np.ndarray, width: int, height: int, device: torch.device) -> Tensor:
    start, rest, row = _grid(width, height, device)
    first, second, third = torch.from_numpy(m.T.copy()).to(device)[..., None, None]
    sums = first * (start + rest) + second * row + third
    depth = sums[2]
    return torch.where(depth != 0, sums[:2] / depth, 0.0).float()
