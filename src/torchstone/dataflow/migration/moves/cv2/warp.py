"""cv2.warpAffine and cv2.warpPerspective.

OpenCV 4 rounds coordinates to 1/32 of a pixel and weights to 15 bits; that is exact here. OpenCV 5
computes LINEAR in float; there the result is within one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._images import (
    BORDER_CONSTANT,
    BORDER_REFLECT,
    BORDER_REFLECT_101,
    BORDER_REPLICATE,
    BORDER_WRAP,
    not_an_image,
    random_image,
    to_uint8,
    unsupported,
    version,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call

NEAREST, LINEAR, INVERSE_MAP = 0, 1, 16
BORDERS = (BORDER_CONSTANT, BORDER_REPLICATE, BORDER_REFLECT, BORDER_REFLECT_101)
_BLOCK = 32


def affine_case(
    src: Any, M: Any, dsize: Any, dst: Any = None, flags: int = LINEAR, borderMode: int = 0, borderValue: Any = 0,
    hint: int = 0,
) -> Case | Refusal:  # fmt: skip
    return _case(src, M, (2, 3), flags, borderMode, borderValue, hint, "affine")


def perspective_case(
    src: Any, M: Any, dsize: Any, dst: Any = None, flags: int = LINEAR, borderMode: int = 0, borderValue: Any = 0,
    hint: int = 0,
) -> Case | Refusal:  # fmt: skip
    return _case(src, M, (3, 3), flags, borderMode, borderValue, hint, "perspective")


def _case(
    src: Any, matrix: Any, shape: tuple[int, int], flags: int, border: int, value: Any, hint: int, name: str
) -> Case | Refusal:  # fmt: skip
    if refused := not_an_image(src, "uint8 float32", (1, 3, 4)):
        return refused
    if getattr(matrix, "shape", None) != shape or matrix.dtype.kind != "f":
        return unsupported("M", getattr(matrix, "dtype", type(matrix).__name__))
    kind = flags & ~INVERSE_MAP
    if kind not in (NEAREST, LINEAR):
        return unsupported("flags", flags)
    if border not in BORDERS:
        return unsupported("borderMode", "BORDER_WRAP" if border == BORDER_WRAP else border)
    if hint or _fill(value, src) is None:
        return unsupported("borderValue or hint", value)
    dtype = str(src.dtype)
    if kind == NEAREST:
        if version() >= (5, 0):
            return unsupported("flags", "INTER_NEAREST of cv2 5")
        return Case(f"nearest {dtype}")
    if version() >= (5, 0):
        return Case(f"linear {dtype}", 1) if dtype == "uint8" else Case(f"linear {dtype}", 0, 1e-3)
    return Case(f"linear {dtype}") if dtype == "uint8" else Case(f"linear {dtype}", 0, 1e-6)


def _fill(value: Any, src: Any) -> list[float] | None:
    numbers = (
        [value] if isinstance(value, int | float) else list(value if value is not None else ())
    )
    if len(numbers) > 4 or not all(isinstance(item, int | float) for item in numbers):
        return None
    if str(src.dtype) == "uint8" and not all(0 <= item <= 255 for item in numbers):
        return None
    return [float(item) for item in [*numbers, 0, 0, 0, 0][:4]]


def warp_affine(
    src: Tensor, M: Any, dsize: Any, flags: int, borderMode: int, borderValue: Any, hint: int
) -> Tensor:  # fmt: skip
    matrix = M.astype(np.float64)
    if not flags & INVERSE_MAP:
        matrix = _inverse_affine(matrix)
    width, height = _size(dsize, src)
    if version() >= (5, 0):
        x, y = _affine_floats(matrix, width, height)
        return _linear_floats(src, x, y, borderMode, borderValue)
    linear = flags & ~INVERSE_MAP == LINEAR
    x, y = _affine_fixed(matrix, width, height, 16 if linear else 512)
    if linear:
        return _linear_fixed(src, x >> 5, y >> 5, borderMode, borderValue)
    return _picked(src, x >> 10, y >> 10, borderMode, borderValue)


def warp_perspective(
    src: Tensor, M: Any, dsize: Any, flags: int, borderMode: int, borderValue: Any, hint: int
) -> Tensor:  # fmt: skip
    matrix = M.astype(np.float64)
    if not flags & INVERSE_MAP:
        matrix = _inverse(matrix)
    width, height = _size(dsize, src)
    if version() >= (5, 0):
        x, y = _perspective_floats(matrix, width, height)
        return _linear_floats(src, x, y, borderMode, borderValue)
    linear = flags & ~INVERSE_MAP == LINEAR
    x, y = _perspective_fixed(matrix, width, height, 32 if linear else 1)
    if linear:
        return _linear_fixed(src, x, y, borderMode, borderValue)
    return _picked(src, x, y, borderMode, borderValue)


def _size(dsize: Any, src: Tensor) -> tuple[int, int]:
    if not dsize or not (dsize[0] and dsize[1]):
        return src.shape[-1], src.shape[-2]
    return int(dsize[0]), int(dsize[1])


def _inverse_affine(m: np.ndarray) -> np.ndarray:
    d = m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
    d = 1 / d if d else 0.0
    a, b, c, e = m[1, 1] * d, m[0, 1] * -d, m[1, 0] * -d, m[0, 0] * d
    x = -a * m[0, 2] - b * m[1, 2]
    y = -c * m[0, 2] - e * m[1, 2]
    return np.array([[a, b, x], [c, e, y]])


def _inverse(m: np.ndarray) -> np.ndarray:
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


# -- coordinates


def _affine_fixed(m: np.ndarray, width: int, height: int, half: int) -> tuple[Tensor, Tensor]:
    """In 1/1024 of a pixel."""
    across, down = np.arange(width), np.arange(height)
    found = []
    for row in m:
        step = _to_int(row[0] * across * 1024)
        start = _to_int((row[1] * down + row[2]) * 1024) + half
        found.append(torch.from_numpy(start[:, None] + step[None]))
    return found[0], found[1]


def _perspective_fixed(m: np.ndarray, width: int, height: int, scale: int) -> tuple[Tensor, Tensor]:
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


def _affine_floats(m: np.ndarray, width: int, height: int) -> tuple[Tensor, Tensor]:
    """float32, each product added with one rounding."""
    found = []
    for row in m.astype(np.float32).astype(np.float64):
        base = (np.arange(height) * row[1] + row[2]).astype(np.float32).astype(np.float64)
        found.append(
            torch.from_numpy((np.arange(width)[None] * row[0] + base[:, None]).astype(np.float32))
        )
    return found[0], found[1]


def _perspective_floats(m: np.ndarray, width: int, height: int) -> tuple[Tensor, Tensor]:
    column, row = np.arange(width)[None], np.arange(height)[:, None]
    x, y, w = (line[0] * column + line[1] * row + line[2] for line in m)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [
            torch.from_numpy(np.where(w != 0, at / w, 0.0).astype(np.float32)) for at in (x, y)
        ]
    return found[0], found[1]


# -- pixels


def _picked(src: Tensor, x: Tensor, y: Tensor, border: int, value: Any) -> Tensor:
    """The pixels at whole coordinates, the border's value where there are none."""
    height, width = src.shape[-2:]
    x, y = x.clamp(-32768, 32767).to(src.device), y.clamp(-32768, 32767).to(src.device)
    if border == BORDER_CONSTANT:
        inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        pixels = src[..., y.clamp(0, height - 1), x.clamp(0, width - 1)]
        fill = torch.tensor(_fill(value, _Like(src)), dtype=torch.float64)[: src.shape[1]]
        fill = fill.round() if src.dtype == torch.uint8 else fill
        return torch.where(inside, pixels, fill.to(src.dtype).to(src.device)[:, None, None])
    return src[..., _inside(y, height, border), _inside(x, width, border)]


class _Like:
    """What `_fill` asks of an image."""

    def __init__(self, image: Tensor) -> None:
        self.dtype = str(image.dtype).removeprefix("torch.")


def _inside(at: Tensor, size: int, border: int) -> Tensor:
    if border == BORDER_REPLICATE or size == 1:
        return at.clamp(0, size - 1)
    if border == BORDER_REFLECT:
        at = at % (2 * size)
        return torch.where(at < size, at, 2 * size - 1 - at)
    at = at % (2 * size - 2)
    return torch.where(at < size, at, 2 * size - 2 - at)


def _linear_fixed(src: Tensor, x: Tensor, y: Tensor, border: int, value: Any) -> Tensor:
    """Coordinates in 1/32; weights in 15 bits."""
    whole_x, whole_y = x >> 5, y >> 5
    part_x, part_y = (x & 31).to(src.device), (y & 31).to(src.device)
    total: Tensor | None = None
    for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)):
        weight = (part_x if dx else 32 - part_x) * (part_y if dy else 32 - part_y)
        pixel = _picked(src, whole_x + dx, whole_y + dy, border, value)
        part = (
            pixel.int() * (weight.int() * 32)
            if src.dtype == torch.uint8
            else pixel * (weight.float() / 1024)
        )
        total = part if total is None else total + part
    assert total is not None
    return to_uint8((total + (1 << 14)) >> 15) if src.dtype == torch.uint8 else total


def _linear_floats(src: Tensor, x: Tensor, y: Tensor, border: int, value: Any) -> Tensor:
    left, top = x.floor(), y.floor()
    a, b = (x - left).to(src.device), (y - top).to(src.device)
    corner = [
        _picked(src, left.long() + dx, top.long() + dy, border, value).float()
        for dy in (0, 1)
        for dx in (0, 1)
    ]
    above = corner[0] + a * (corner[1] - corner[0])
    below = corner[2] + a * (corner[3] - corner[2])
    result = above + b * (below - above)
    return to_uint8(result) if src.dtype == torch.uint8 else result


# -- samples


def _options(rng: np.random.Generator) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if rng.integers(2):
        options["flags"] = int(rng.choice([NEAREST, LINEAR])) | int(rng.choice([0, INVERSE_MAP]))
    if rng.integers(2):
        options["borderMode"] = int(rng.choice(BORDERS))
    if rng.integers(3) == 0:
        options["borderValue"] = (114, 30, 255)
    return options


def _image(rng: np.random.Generator) -> np.ndarray:
    return random_image(rng, (1, 3), str(rng.choice(["uint8", "uint8", "float32"])))


def affine_sample(rng: np.random.Generator) -> Call:
    angle, scale = rng.uniform(0, 6.3), rng.uniform(0.5, 2)
    matrix = np.array([
        [scale * np.cos(angle), scale * np.sin(angle), rng.uniform(-20, 20)],
        [-scale * np.sin(angle), scale * np.cos(angle), rng.uniform(-20, 20)],
    ])  # fmt: skip
    size = tuple(int(item) for item in rng.integers(1, 64, 2))
    return call(_image(rng), matrix, size, **_options(rng))


def perspective_sample(rng: np.random.Generator) -> Call:
    matrix = np.eye(3) + rng.uniform(-0.3, 0.3, (3, 3))
    matrix[:2, 2] *= 30
    matrix[2, :2] /= 200
    size = tuple(int(item) for item in rng.integers(1, 64, 2))
    return call(_image(rng), matrix, size, **_options(rng))


MOVES = (
    OpSpec("cv2.warpAffine", affine_case, affine_sample, warp_affine, {"src": "image"}, batched=True),
    OpSpec("cv2.warpPerspective", perspective_case, perspective_sample, warp_perspective, {"src": "image"}, batched=True),
)  # fmt: skip
