"""cv2.erode, cv2.dilate and cv2.morphologyEx."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._images import (
    not_an_image,
    pad,
    random_image,
    unsupported,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call

ERODE, DILATE, OPEN, CLOSE, GRADIENT, TOPHAT, BLACKHAT = range(7)


def case(
    src: Any, kernel: Any, dst: Any = None, anchor: Any = (-1, -1), iterations: int = 1, borderType: int = 0,
    borderValue: Any = None,
) -> Case | Refusal:  # fmt: skip
    if refused := not_an_image(src, "uint8 int16 float32"):
        return refused
    if kernel is not None and not (
        isinstance(kernel, np.ndarray) and kernel.ndim == 2 and kernel.any()
    ):
        return unsupported("kernel", getattr(kernel, "shape", kernel))
    if tuple(anchor) != (-1, -1) or borderValue is not None or borderType != 0:
        return unsupported("anchor or border", (anchor, borderType))
    if iterations < 1:
        return unsupported("iterations", iterations)
    return Case("any")


def _extreme(src: Tensor, kernel: Any, iterations: int, largest: bool) -> Tensor:
    """The border never wins: OpenCV's default is the value that cannot."""
    if kernel is None:
        side = 1 + 2 * iterations
        kernel, iterations = np.ones((side, side), np.uint8), 1
    height, width = kernel.shape
    if kernel.all():
        return _extreme_of_box(src, height, width, iterations, largest)
    # the element of a dilation is turned by half a turn only in theory: OpenCV takes it as it is
    offsets = [(int(row), int(column)) for row, column in np.argwhere(kernel)]
    outside = _limit(src.dtype, largest)
    choose = torch.maximum if largest else torch.minimum
    for _ in range(iterations):
        padded = pad(
            src,
            height // 2,
            height - 1 - height // 2,
            width // 2,
            width - 1 - width // 2,
            0,
            outside,
        )
        rows, columns = src.shape[-2:]
        parts = [
            padded[..., row : row + rows, column : column + columns] for row, column in offsets
        ]
        src = parts[0]
        for part in parts[1:]:
            src = choose(src, part)
    return src


def _extreme_of_box(src: Tensor, height: int, width: int, iterations: int, largest: bool) -> Tensor:
    """A full element: pooling, and one larger box in place of several rounds."""
    above, left = height // 2 * iterations, width // 2 * iterations
    below = (height - 1 - height // 2) * iterations
    right = (width - 1 - width // 2) * iterations
    sign = 1 if largest else -1
    values = src.float() if largest else -src.float()
    padded = pad(values, above, below, left, right, 0, float("-inf"))
    size = (above + below + 1, left + right + 1)
    pooled = torch.nn.functional.max_pool2d(padded, size, stride=1)
    return (pooled if sign > 0 else -pooled).to(src.dtype)


def _limit(dtype: torch.dtype, largest: bool) -> float:
    if dtype.is_floating_point:
        limit = float(torch.finfo(dtype).max)
        return -limit if largest else limit
    limits = torch.iinfo(dtype)
    return limits.min if largest else limits.max


def erode(
    src: Tensor, kernel: Any, anchor: Any, iterations: int, borderType: int, borderValue: None
) -> Tensor:
    return _extreme(src, kernel, iterations, largest=False)


def dilate(
    src: Tensor, kernel: Any, anchor: Any, iterations: int, borderType: int, borderValue: None
) -> Tensor:
    return _extreme(src, kernel, iterations, largest=True)


def morphology_case(
    src: Any, op: int, kernel: Any, dst: Any = None, anchor: Any = (-1, -1), iterations: int = 1,
    borderType: int = 0, borderValue: Any = None,
) -> Case | Refusal:  # fmt: skip
    if op not in range(7):
        return unsupported("op", op)
    if str(getattr(src, "dtype", "")) not in ("uint8", "int16"):
        return not_an_image(src, "uint8 int16") or unsupported("dtype", "a float image")
    return case(src, kernel, dst, anchor, iterations, borderType, borderValue)


def morphology(
    src: Tensor, op: int, kernel: Any, anchor: Any, iterations: int, borderType: int, borderValue: None
) -> Tensor:  # fmt: skip
    def low(image: Tensor) -> Tensor:
        return _extreme(image, kernel, iterations, largest=False)

    def high(image: Tensor) -> Tensor:
        return _extreme(image, kernel, iterations, largest=True)

    if op in (ERODE, DILATE):
        return low(src) if op == ERODE else high(src)
    if op in (OPEN, CLOSE):
        return high(low(src)) if op == OPEN else low(high(src))
    if op == GRADIENT:
        above, below = high(src), low(src)
    elif op == TOPHAT:
        above, below = src, high(low(src))
    else:
        above, below = low(high(src)), src
    limits = torch.iinfo(src.dtype)
    return (above.int() - below.int()).clamp(limits.min, limits.max).to(src.dtype)


def _kernel(rng: np.random.Generator) -> np.ndarray | None:
    if rng.integers(5) == 0:
        return None
    kernel = rng.integers(0, 2, tuple(rng.integers(1, 6, 2))).astype(np.uint8)
    if rng.integers(2):
        kernel[:] = 1
    kernel[tuple(size // 2 for size in kernel.shape)] = 1
    return kernel


def sample(rng: np.random.Generator) -> Call:
    image = random_image(rng, (1, 3), str(rng.choice(["uint8", "uint8", "float32"])))
    if rng.integers(2):
        return call(image, _kernel(rng))
    return call(image, _kernel(rng), iterations=int(rng.integers(1, 4)))


def morphology_sample(rng: np.random.Generator) -> Call:
    return call(random_image(rng, (1, 3)), int(rng.integers(7)), _kernel(rng))


MOVES = (
    OpSpec("cv2.erode", case, sample, erode, {"src": "image"}, batched=True),
    OpSpec("cv2.dilate", case, sample, dilate, {"src": "image"}, batched=True),
    OpSpec("cv2.morphologyEx", morphology_case, morphology_sample, morphology, {"src": "image"}, batched=True),
)  # fmt: skip
