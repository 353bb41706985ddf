"""cv2.GaussianBlur: 8.8 fixed point for uint8, float32 else. The kernel is made once."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._fixed_blur import (
    fixed_kernel,
    gaussian_kernel,
    size_for,
)
from torchstone.dataflow.migration.moves.cv2._images import (
    BORDER_DEFAULT,
    BORDER_ISOLATED,
    BORDER_WRAP,
    not_an_image,
    pad,
    random_image,
    unsupported,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call

BORDERS = (0, 1, 2, 4)


def case(
    src: Any, ksize: Any, sigmaX: float = 0, dst: Any = None, sigmaY: float = 0,
    borderType: int = BORDER_DEFAULT, hint: int = 0,
) -> Case | Refusal:  # fmt: skip
    if refused := not_an_image(src, "uint8 float32"):
        return refused
    if borderType & ~BORDER_ISOLATED not in BORDERS:
        return unsupported("borderType", "BORDER_WRAP" if borderType == BORDER_WRAP else borderType)
    if hint:
        return unsupported("hint", hint)
    if src.dtype == np.uint8:
        return Case("uint8")
    return Case("float32", 0, 1e-6)


class GaussianBlur:
    """One configuration: both kernels on the device."""

    def __init__(
        self, ksize: Any, sigmaX: float, sigmaY: float, borderType: int, hint: int, device: torch.device
    ) -> None:  # fmt: skip
        self._sizes = (int(ksize[0]), int(ksize[1]))
        self._sigmas = (sigmaX, sigmaY if sigmaY > 0 else sigmaX)
        self._border = borderType
        self._kernels: dict[torch.dtype, tuple[list[Any], list[Any]]] = {}

    def __call__(self, src: Tensor) -> Tensor:
        across, down = self._kernels_for(src.dtype)
        values = (src.int() if src.dtype == torch.uint8 else src).contiguous()
        values = _blurred(values, across, -1, self._border)
        values = _blurred(values, down, -2, self._border)
        if src.dtype != torch.uint8:
            return values
        return ((values + (1 << 15)) >> 16).clamp(0, 255).to(torch.uint8)

    def _kernels_for(self, dtype: torch.dtype) -> tuple[list[Any], list[Any]]:
        if dtype not in self._kernels:
            is_uint8 = dtype == torch.uint8
            sizes = [
                size if size > 0 else size_for(sigma, is_uint8)
                for size, sigma in zip(self._sizes, self._sigmas, strict=True)
            ]
            make = fixed_kernel if is_uint8 else gaussian_kernel
            kernels = [make(size, sigma) for size, sigma in zip(sizes, self._sigmas, strict=True)]
            plain = [
                kernel.astype(np.float32 if not is_uint8 else np.int32).tolist()
                for kernel in kernels
            ]
            self._kernels[dtype] = (plain[0], plain[1])
        return self._kernels[dtype]


def _blurred(values: Tensor, kernel: list[Any], axis: int, border: int) -> Tensor:
    half = len(kernel) // 2
    sides = (0, 0, half, half) if axis == -1 else (half, half, 0, 0)
    padded = pad(values, *sides, border)
    size = values.shape[axis]
    total: Tensor = padded.narrow(axis, 0, size) * kernel[0]
    for index, weight in enumerate(kernel[1:], 1):
        total = total + padded.narrow(axis, index, size) * weight
    return total


def sample(rng: np.random.Generator) -> Call:
    image = random_image(rng, (1, 3, 4), rng.choice(["uint8", "uint8", "float32"]))
    sizes = tuple(int(size) * 2 + 1 for size in rng.integers(0, 8, 2))
    sigma = float(rng.choice([0.0, rng.uniform(0.3, 5)]))
    kind = rng.integers(4)
    if kind == 0:
        return call(image, (sizes[0], sizes[0]), sigma)
    if kind == 1:
        return call(image, (0, 0), float(rng.uniform(0.3, 4)))
    if kind == 2:
        return call(image, sizes, sigma, None, float(rng.uniform(0.3, 3)))
    return call(image, sizes, sigmaX=sigma, borderType=int(rng.choice(BORDERS)))


MOVES = (
    OpSpec(
        "cv2.GaussianBlur", case, sample, GaussianBlur, {"src": "image"}, strategy="FactoryOp", batched=True
    ),
)  # fmt: skip
