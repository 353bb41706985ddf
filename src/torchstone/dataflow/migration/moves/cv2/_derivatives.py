"""Kernels of derivatives, and their sums in integers."""

from __future__ import annotations

from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._images import pad


def sobel_kernels(dx: int, dy: int, ksize: int) -> tuple[list[int], list[int]]:
    """Across and down; -1 is Scharr's."""
    if ksize == -1:
        smooth, slope = [3, 10, 3], [-1, 0, 1]
        return (slope, smooth) if dx == 1 else (smooth, slope)
    return _sobel(dx, 3 if ksize == 1 and dx > 0 else ksize), _sobel(
        dy, 3 if ksize == 1 and dy > 0 else ksize
    )


def _sobel(order: int, size: int) -> list[int]:
    if size == 1:
        return [1]
    if size == 3:
        return {0: [1, 2, 1], 1: [-1, 0, 1], 2: [1, -2, 1]}[order]
    kernel = [1] + [0] * size
    for _ in range(size - order - 1):
        old = kernel[0]
        for index in range(1, size + 1):
            new = kernel[index] + kernel[index - 1]
            kernel[index - 1] = old
            old = new
    for _ in range(order):
        old = -kernel[0]
        for index in range(1, size + 1):
            new = kernel[index - 1] - kernel[index]
            kernel[index - 1] = old
            old = new
    return kernel[:size]


def separable(values: Tensor, across: list[int], down: list[int], border: int) -> Tensor:
    for axis, kernel in ((-1, across), (-2, down)):
        half = len(kernel) // 2
        sides = (0, 0, half, half) if axis == -1 else (half, half, 0, 0)
        padded = pad(values, *sides, border)
        size = values.shape[axis]
        parts = [padded.narrow(axis, i, size) * weight for i, weight in enumerate(kernel) if weight]
        values = sum(parts[1:], parts[0])
    return values
