"""The coordinates that cv2.warpAffine and cv2.warpPerspective read from, in OpenCV's precision."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

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


def affine_fixed(m: np.ndarray, width: int, height: int, half: int) -> tuple[Tensor, Tensor]:
    """In 1/1024 of a pixel."""
    across, down = np.arange(width), np.arange(height)
    found = []
    for row in m:
        step = _to_int(row[0] * across * 1024)
        start = _to_int((row[1] * down + row[2]) * 1024) + half
        found.append(torch.from_numpy(start[:, None] + step[None]))
    return found[0], found[1]


def perspective_fixed(m: np.ndarray, width: int, height: int, scale: int) -> tuple[Tensor, Tensor]:
    """In 1/scale of a pixel; sums are made block by block, as OpenCV makes them."""
    tall = min(_BLOCK // 2, height)
    wide = min(_BLOCK * _BLOCK // tall, width)
    column, row = np.arange(width), np.arange(height)[:, None]
    start, rest = column // wide * wide, column % wide
    x, y, w = (line[0] * start + line[1] * row + line[2] for line in m)
    depth = w + m[2, 0] * rest
    with np.errstate(divide="ignore"):
        depth = np.where(depth != 0, scale / depth, 0.0)
    found = [
        torch.from_numpy(_to_int(np.clip((at + line[0] * rest) * depth, -(2.0**31), 2.0**31 - 1)))
        for at, line in ((x, m[0]), (y, m[1]))
    ]
    return found[0], found[1]


def _to_int(values: np.ndarray) -> np.ndarray:
    whole: np.ndarray = np.rint(np.clip(values, -(2.0**31), 2.0**31 - 1)).astype(np.int64)
    return whole


def affine_floats(m: np.ndarray, width: int, height: int) -> tuple[Tensor, Tensor]:
    """float32, each product added with one rounding."""
    found = []
    for row in m.astype(np.float32).astype(np.float64):
        base = (np.arange(height) * row[1] + row[2]).astype(np.float32).astype(np.float64)
        found.append(
            torch.from_numpy((np.arange(width)[None] * row[0] + base[:, None]).astype(np.float32))
        )
    return found[0], found[1]


def perspective_floats(m: np.ndarray, width: int, height: int) -> tuple[Tensor, Tensor]:
    column, row = np.arange(width)[None], np.arange(height)[:, None]
    x, y, w = (line[0] * column + line[1] * row + line[2] for line in m)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [
            torch.from_numpy(np.where(w != 0, at / w, 0.0).astype(np.float32)) for at in (x, y)
        ]
    return found[0], found[1]
