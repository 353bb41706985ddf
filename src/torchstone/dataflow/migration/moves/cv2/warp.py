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
from torchstone.dataflow.migration.moves.cv2._warp_coordinates import (
    affine_fixed,
    affine_floats,
    inverse,
    inverse_affine,
    perspective_fixed,
    perspective_floats,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call

NEAREST, LINEAR, INVERSE_MAP = 0, 1, 16
BORDERS = (BORDER_CONSTANT, BORDER_REPLICATE, BORDER_REFLECT, BORDER_REFLECT_101)


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
        matrix = inverse_affine(matrix)
    width, height = _size(dsize, src)
    if not len(src):  # only the size is asked for
        return src.new_empty((0, src.shape[1], height, width))
    if version() >= (5, 0):
        x, y = affine_floats(matrix, width, height)
        return _linear_floats(src, x, y, borderMode, borderValue)
    linear = flags & ~INVERSE_MAP == LINEAR
    x, y = affine_fixed(matrix, width, height, 16 if linear else 512)
    if linear:
        return _linear_fixed(src, x >> 5, y >> 5, borderMode, borderValue)
    return _picked(src, x >> 10, y >> 10, borderMode, borderValue)


def warp_perspective(
    src: Tensor, M: Any, dsize: Any, flags: int, borderMode: int, borderValue: Any, hint: int
) -> Tensor:  # fmt: skip
    matrix = M.astype(np.float64)
    if not flags & INVERSE_MAP:
        matrix = inverse(matrix)
    width, height = _size(dsize, src)
    if not len(src):  # only the size is asked for
        return src.new_empty((0, src.shape[1], height, width))
    if version() >= (5, 0):
        x, y = perspective_floats(matrix, width, height)
        return _linear_floats(src, x, y, borderMode, borderValue)
    linear = flags & ~INVERSE_MAP == LINEAR
    x, y = perspective_fixed(matrix, width, height, 32 if linear else 1)
    if linear:
        return _linear_fixed(src, x, y, borderMode, borderValue)
    return _picked(src, x, y, borderMode, borderValue)


def _size(dsize: Any, src: Tensor) -> tuple[int, int]:
    if not dsize or not (dsize[0] and dsize[1]):
        return src.shape[-1], src.shape[-2]
    return int(dsize[0]), int(dsize[1])


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
