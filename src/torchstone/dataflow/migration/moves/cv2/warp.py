"""cv2.warpAffine and cv2.warpPerspective.

OpenCV 4 rounds coordinates to 1/32 of a pixel and weights to 15 bits; that is exact here. OpenCV 5
computes LINEAR in float; there the result is within one.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
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
    TABLES,
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
    border = _Border(borderMode, borderValue)
    if version() >= (5, 0):
        return _linear_floats(src, affine_floats(matrix, width, height, src.device), border)
    linear = flags & ~INVERSE_MAP == LINEAR
    at = affine_fixed(matrix, width, height, 16 if linear else 512, src.device)
    return _linear_fixed(src, at >> 5, border) if linear else _nearest(src, at >> 10, border)


def warp_perspective(
    src: Tensor, M: Any, dsize: Any, flags: int, borderMode: int, borderValue: Any, hint: int
) -> Tensor:  # fmt: skip
    matrix = M.astype(np.float64)
    if not flags & INVERSE_MAP:
        matrix = inverse(matrix)
    width, height = _size(dsize, src)
    if not len(src):  # only the size is asked for
        return src.new_empty((0, src.shape[1], height, width))
    border = _Border(borderMode, borderValue)
    if version() >= (5, 0):
        return _linear_floats(src, perspective_floats(matrix, width, height, src.device), border)
    linear = flags & ~INVERSE_MAP == LINEAR
    at = perspective_fixed(matrix, width, height, 32 if linear else 1, src.device)
    return _linear_fixed(src, at, border) if linear else _nearest(src, at, border)


def _size(dsize: Any, src: Tensor) -> tuple[int, int]:
    if not dsize or not (dsize[0] and dsize[1]):
        return src.shape[-1], src.shape[-2]
    return int(dsize[0]), int(dsize[1])


# -- pixels. Coordinates are (2, …): x, then y.


@dataclass(frozen=True, slots=True)
class _Border:
    kind: int
    value: Any


def _picked(src: Tensor, at: Tensor, border: _Border) -> Tensor:
    """The pixels at whole coordinates (2, taps, height, width), (N, C, taps y, taps x, height,
    width); the border's value where there are none."""
    height, width = src.shape[-2:]
    at = at.clamp(-32768, 32767)  # OpenCV holds them in 16 bits
    pixels = src.flatten(2)
    if border.kind == BORDER_CONSTANT:
        inside = torch.minimum(at.clamp(min=0), _last_pixels(height, width, src.device))
        known = inside == at
        index = _flat(inside, width)
        is_known = known[1][:, None] & known[0]
        fill = _fill_pixel(border.value, src).expand(len(src), -1, 1)
        pixels = torch.cat([pixels, fill], -1)
        index = torch.where(is_known, index, height * width)
    else:
        sides = (_inside(at[0], width, border.kind), _inside(at[1], height, border.kind))
        index = _flat(sides, width)
    taken: Tensor = pixels.index_select(-1, index.reshape(-1)).unflatten(-1, index.shape)
    return taken


def _flat(at: Tensor | tuple[Tensor, Tensor], width: int) -> Tensor:
    """(taps y, taps x, height, width): places in an image whose rows follow each other."""
    return torch.add(at[0], at[1][:, None], alpha=width)


@functools.lru_cache(maxsize=TABLES)
def _last_pixels(height: int, width: int, device: torch.device) -> Tensor:
    return torch.tensor([width - 1, height - 1]).reshape(2, 1, 1, 1).to(device)


def _fill_pixel(value: Any, src: Tensor) -> Tensor:
    numbers = _fill(value, _Like(src))
    assert numbers is not None
    return _kept_fill(tuple(numbers[: src.shape[1]]), src.dtype, src.device)


@functools.lru_cache(maxsize=TABLES)
def _kept_fill(numbers: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    fill = torch.tensor(numbers, dtype=torch.float64)
    fill = fill.round() if dtype == torch.uint8 else fill
    return fill.to(dtype).reshape(1, -1, 1).to(device)


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


def _nearest(src: Tensor, at: Tensor, border: _Border) -> Tensor:
    return _picked(src, at[:, None], border)[:, :, 0, 0]


@functools.cache
def _two_taps(dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor([0, 1], dtype=dtype).reshape(1, 2, 1, 1).to(device)


def _linear_fixed(src: Tensor, at: Tensor, border: _Border) -> Tensor:
    """Coordinates in 1/32; a weight is a product of two of 5 bits."""
    pixels = _picked(src, (at >> 5)[:, None] + _two_taps(at.dtype, at.device), border)
    part = at & 31
    sides = torch.stack([32 - part, part], 1)
    weights = sides[1][:, None] * sides[0]
    if src.dtype == torch.uint8:
        total = (pixels * weights.int()).sum((2, 3), dtype=torch.int32)
        return ((total + (1 << 9)) >> 10).to(torch.uint8)
    return (pixels * (weights.float() / 1024)).sum((2, 3))


def _linear_floats(src: Tensor, at: Tensor, border: _Border) -> Tensor:
    whole = at.floor()
    taps = whole.long()[:, None] + _two_taps(torch.int64, at.device)
    pixels = _picked(src, taps, border).float()
    part = at - whole
    lines = torch.lerp(pixels[:, :, :, 0], pixels[:, :, :, 1], part[0])
    result = torch.lerp(lines[:, :, 0], lines[:, :, 1], part[1])
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
