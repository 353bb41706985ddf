"""cv2.resize in all interpolations.

uint8 LINEAR is OpenCV's fixed-point arithmetic (11-bit coefficients, the row fraction kept at the
border, decimation by two as AREA); CUBIC and fractional AREA differ by at most one, because OpenCV
sums them in float with vector instructions whose order depends on the processor.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._images import (
    TABLES,
    not_an_image,
    random_image,
    to_uint8,
    unsupported,
    version,
)
from torchstone.dataflow.migration.moves.cv2._resize_taps import (
    cubic_weights,
    lanczos_weights,
    linear_weights,
    taps,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call

NEAREST, LINEAR, CUBIC, AREA, LANCZOS4, LINEAR_EXACT, NEAREST_EXACT = range(7)
_NAMES = "nearest linear cubic area lanczos4 linear-exact nearest-exact".split()
_ONE = 1 << 11


def case(
    src: Any, dsize: Any, dst: Any = None, fx: float = 0, fy: float = 0, interpolation: int = 1
) -> Case | Refusal:
    if refused := not_an_image(src, "uint8 float32"):
        return refused
    if interpolation not in range(7):
        return unsupported("interpolation", interpolation)
    if interpolation == NEAREST_EXACT and version() >= (5, 0):
        return unsupported("interpolation", "INTER_NEAREST_EXACT of cv2 5")
    kind = str(src.dtype)
    name = f"{_NAMES[interpolation]} {kind}"
    if interpolation in (NEAREST, NEAREST_EXACT):
        return Case(name)
    if kind == "float32":
        if interpolation == LINEAR_EXACT:
            return unsupported("interpolation", "INTER_LINEAR_EXACT for float32")
        return Case(name, 1e-6, 2e-5)
    plan = _plan(src.shape[1], src.shape[0], dsize, fx, fy, interpolation)
    if interpolation == AREA and plan.kind == "area":
        return Case("area uint8, fractional", 1)
    return Case(name, 1 if interpolation == CUBIC else 0)


@dataclass(frozen=True, slots=True)
class _Plan:
    kind: str
    width: int
    height: int
    scale_x: float
    scale_y: float


def _plan(width: int, height: int, dsize: Any, fx: float, fy: float, interpolation: int) -> _Plan:
    """Sizes and scales as OpenCV takes them from the arguments."""
    if dsize is not None and (dsize[0] or dsize[1]):
        to_x, to_y = int(dsize[0]), int(dsize[1])
        inverse_x, inverse_y = to_x / width, to_y / height
    else:
        to_x, to_y = _round(width * fx), _round(height * fy)
        inverse_x, inverse_y = float(fx), float(fy)
    scale_x, scale_y = 1 / inverse_x, 1 / inverse_y
    whole = (_round(scale_x), _round(scale_y))
    is_whole = (
        abs(scale_x - whole[0]) < 2.220446049250313e-16
        and abs(scale_y - whole[1]) < 2.220446049250313e-16
    )
    kind = _NAMES[interpolation]
    if interpolation == LINEAR and is_whole and whole == (2, 2):
        kind = "area-whole"
    elif interpolation == AREA:
        kind = "area-up"
        if scale_x >= 1 and scale_y >= 1:
            kind = "area-whole" if is_whole else "area"
    return _Plan(kind, to_x, to_y, scale_x, scale_y)


def _round(value: float) -> int:
    return int(np.rint(value))


def resize(
    src: Tensor, dsize: Any, fx: float = 0, fy: float = 0, interpolation: int = LINEAR
) -> Tensor:
    height, width = src.shape[-2:]
    plan = _plan(width, height, dsize, fx, fy, interpolation)
    if plan.width <= 0 or plan.height <= 0:
        raise ValueError(f"a result of {plan.width} x {plan.height} pixels")
    if (plan.width, plan.height) == (width, height) and interpolation != LINEAR_EXACT:
        return src.clone()
    return _KINDS[plan.kind](src, plan)


# -- nearest


def _nearest(src: Tensor, plan: _Plan) -> Tensor:
    rows = _nearest_index(src.shape[-2], plan.height, plan.scale_y, src.device)
    columns = _nearest_index(src.shape[-1], plan.width, plan.scale_x, src.device)
    return src.index_select(-2, rows).index_select(-1, columns)


@functools.lru_cache(maxsize=TABLES)
def _nearest_index(size: int, count: int, scale: float, device: torch.device) -> Tensor:
    index = np.minimum(np.floor(np.arange(count) * scale).astype(np.int64), size - 1)
    return torch.from_numpy(index).to(device)


def _nearest_exact(src: Tensor, plan: _Plan) -> Tensor:
    def index(size: int, count: int) -> Tensor:
        step = ((size << 16) + count // 2) // count
        first = step // 2 - size % 2
        at = (np.arange(count, dtype=np.int64) * step + first) >> 16
        return torch.from_numpy(np.minimum(at, size - 1)).to(src.device)

    rows, columns = index(src.shape[-2], plan.height), index(src.shape[-1], plan.width)
    return src.index_select(-2, rows).index_select(-1, columns)


# -- two, four and eight taps


def _gathered(src: Tensor, plan: _Plan, weigh: Callable[[np.ndarray], np.ndarray]) -> Tensor:
    fixed, device = src.dtype == torch.uint8, src.device
    columns = _kept_taps(src.shape[-1], plan.width, plan.scale_x, weigh, False, fixed, device)
    rows = _kept_taps(src.shape[-2], plan.height, plan.scale_y, weigh, True, fixed, device)
    return _weighted(src, rows, columns)


@dataclass(frozen=True, slots=True)
class _Taps:
    """For one axis, on the device: the pixels of all taps, one after the other, and their weights."""

    index: Tensor
    weights: Tensor
    """(taps, places)."""

    def gathered(self, src: Tensor, axis: int) -> Tensor:
        """With an axis for the taps before the one that is resized."""
        taken: Tensor = src.index_select(axis, self.index).unflatten(axis, self.weights.shape)
        return taken

    def summed(self, src: Tensor, axis: int, dtype: torch.dtype) -> Tensor:
        weights = self.weights if axis == -1 else self.weights[..., None]
        total: Tensor = (self.gathered(src, axis) * weights).sum(axis - 1, dtype=dtype)
        return total


def _on_device(pairs: tuple[np.ndarray, np.ndarray], device: torch.device) -> _Taps:
    at, weights = pairs
    return _Taps(
        torch.from_numpy(np.ascontiguousarray(at.reshape(-1))).to(device),
        torch.from_numpy(np.ascontiguousarray(weights)).to(device),
    )


@functools.lru_cache(maxsize=TABLES)
def _kept_taps(
    size: int, count: int, scale: float, weigh: Callable[[np.ndarray], np.ndarray], keep: bool,
    fixed: bool, device: torch.device,
) -> _Taps:  # fmt: skip
    """Made once and kept on the device: the same sizes come back with every image."""
    pairs = taps(size, count, scale, weigh, keep)
    return _on_device(_fixed(pairs) if fixed else pairs, device)


def _weighted(src: Tensor, rows: _Taps, columns: _Taps) -> Tensor:
    if src.dtype != torch.uint8:
        across = columns.summed(src, -1, torch.float32)
        return rows.summed(across, -2, torch.float32)
    across = columns.summed(src, -1, torch.int32)
    if len(rows.weights) > 2:
        down = rows.summed(across, -2, torch.int32)
        return to_uint8((down + (1 << 21)) >> 22)
    products = (rows.gathered(across >> 4, -2) * rows.weights[..., None]) >> 16
    # two weights of one sum: nothing is above 255
    return ((products.sum(-3, dtype=torch.int32) + 2) >> 2).to(torch.uint8)


def _fixed(pairs: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return pairs[0], np.rint(pairs[1] * np.float32(_ONE)).clip(-32768, 32767).astype(np.int32)


# -- area


def _area_up(src: Tensor, plan: _Plan) -> Tensor:
    """Where it enlarges in one direction, AREA is LINEAR with other fractions."""

    def area_taps(size: int, count: int, scale: float, keep: bool) -> tuple[np.ndarray, np.ndarray]:
        at = np.arange(count)
        below = np.floor(at * scale).astype(np.int64)
        fraction = ((at + 1) - (below + 1) * (1 / scale)).astype(np.float32)
        fraction = np.where(fraction <= 0, np.float32(0), fraction - np.floor(fraction))
        if not keep:
            fraction = np.where((below < 0) | (below >= size - 1), np.float32(0), fraction)
            below = below.clip(0, size - 1)
        return np.stack([below, below + 1]).clip(0, size - 1), linear_weights(
            fraction.astype(np.float32)
        )

    pairs = (
        area_taps(src.shape[-2], plan.height, plan.scale_y, keep=True),
        area_taps(src.shape[-1], plan.width, plan.scale_x, keep=False),
    )
    if src.dtype == torch.uint8:
        pairs = (_fixed(pairs[0]), _fixed(pairs[1]))
    return _weighted(src, _on_device(pairs[0], src.device), _on_device(pairs[1], src.device))


def _area_whole(src: Tensor, plan: _Plan) -> Tensor:
    """Means of whole blocks."""
    step_x, step_y = _round(plan.scale_x), _round(plan.scale_y)
    count = step_x * step_y
    blocks = src[..., : plan.height * step_y, : plan.width * step_x]
    shape = (*src.shape[:2], plan.height, step_y, plan.width, step_x)
    if src.dtype != torch.uint8:
        return blocks.reshape(shape).sum((-1, -3)) * np.float32(1 / count).item()
    total = blocks.reshape(shape).int().sum((-1, -3), dtype=torch.int32)
    if (step_x, step_y) == (2, 2) and src.shape[1] != 2:  # two channels have no vector code
        return to_uint8((total + 2) >> 2)
    return to_uint8(total.float() * np.float32(1 / count).item())


def _area(src: Tensor, plan: _Plan) -> Tensor:
    """Means of blocks with fractional ends."""
    columns = _area_matrix(src.shape[-1], plan.width, plan.scale_x, src.device)
    rows = _area_matrix(src.shape[-2], plan.height, plan.scale_y, src.device)
    mean = rows @ (src.float() @ columns.T)
    return to_uint8(mean) if src.dtype == torch.uint8 else mean


@functools.lru_cache(maxsize=TABLES)
def _area_matrix(size: int, count: int, scale: float, device: torch.device) -> Tensor:
    matrix = np.zeros((count, size), np.float32)
    for index in range(count):
        start = index * scale
        end = start + scale
        cell = min(scale, size - start)
        first, last = math.ceil(start), min(math.floor(end), size - 1)
        first = min(first, last)
        if first - start > 1e-3:
            matrix[index, first - 1] += (first - start) / cell
        matrix[index, first:last] += 1 / cell
        if end - last > 1e-3:
            matrix[index, last] += min(min(end - last, 1.0), cell) / cell
    return torch.from_numpy(matrix).to(device)


# -- linear, exact


def _linear_exact(src: Tensor, plan: _Plan) -> Tensor:
    """16-bit fixed point with 8 fractional bits."""

    def exact_taps(size: int, count: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
        exact = scale * (np.arange(count) + 0.5) - 0.5
        below = np.floor(exact)
        fraction = np.rint((exact - below) * 256).astype(np.int32)
        low, high = below < 0, below >= size - 1
        fraction[low | high] = 0
        below = below.astype(np.int64).clip(0, size - 1)
        return np.stack([below, (below + 1).clip(0, size - 1)]), np.stack(
            [256 - fraction, fraction]
        )

    columns = _on_device(exact_taps(src.shape[-1], plan.width, plan.scale_x), src.device)
    rows = _on_device(exact_taps(src.shape[-2], plan.height, plan.scale_y), src.device)
    across = columns.summed(src, -1, torch.int32)
    return to_uint8((rows.summed(across, -2, torch.int32) + (1 << 15)) >> 16)


_KINDS: dict[str, Callable[[Tensor, _Plan], Tensor]] = {
    "nearest": _nearest,
    "nearest-exact": _nearest_exact,
    "linear": lambda src, plan: _gathered(src, plan, linear_weights),
    "cubic": lambda src, plan: _gathered(src, plan, cubic_weights),
    "lanczos4": lambda src, plan: _gathered(src, plan, lanczos_weights),
    "linear-exact": _linear_exact,
    "area": _area,
    "area-whole": _area_whole,
    "area-up": _area_up,
}


def sample(rng: np.random.Generator) -> Call:
    """Positional as real code is; halves, thirds and scale factors too."""
    image = random_image(rng, (1, 2, 3, 4), rng.choice(["uint8", "uint8", "float32"]))
    interpolation = int(rng.integers(7))
    height, width = image.shape[:2]
    kind = rng.integers(6)
    if kind == 0 and height > 3 and width > 3:
        by = int(rng.integers(2, 4))
        image = image[: height // by * by, : width // by * by].copy()
        return call(
            image, (image.shape[1] // by, image.shape[0] // by), interpolation=interpolation
        )
    if kind == 1 and height > 2 and width > 2:
        factors = rng.uniform(0.4, 2.5, 2)
        return call(
            image, None, fx=float(factors[0]), fy=float(factors[1]), interpolation=interpolation
        )
    size = tuple(int(item) for item in rng.integers(1, 64, 2))
    if kind == 3:
        size = (int(rng.integers(1, width + 1)), int(rng.integers(1, height + 1)))
    if kind == 2:
        return call(image, size, None, 0, 0, interpolation)
    return call(image, size, interpolation=interpolation)


MOVES = (OpSpec("cv2.resize", case, sample, resize, {"src": "image"}, batched=True),)
