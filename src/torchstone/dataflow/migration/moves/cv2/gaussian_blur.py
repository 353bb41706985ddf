"""cv2.GaussianBlur: 8.8 fixed point for uint8, float32 else. The kernel is made once.

Fixed point is computed in float64, which holds every sum exactly and which no device computes in a
shorter format (convolutions of float32 may be TF32).
"""

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
        self._kernels: dict[torch.dtype, tuple[Tensor, Tensor]] = {}

    def __call__(self, src: Tensor) -> Tensor:
        is_uint8 = src.dtype == torch.uint8
        across, down = self._kernels_for(src)
        images = src.reshape(src.shape[0] * src.shape[1], 1, *src.shape[-2:])
        halves = (down.shape[-2] // 2, across.shape[-1] // 2)
        padded = pad(images, halves[0], halves[0], halves[1], halves[1], self._border)
        values = torch.conv2d(torch.conv2d(padded.to(across.dtype), across), down, self._bias(down, is_uint8))  # fmt: skip
        # weights are whole 1/256, so all sums are exact and rounding is what the cast cuts off
        return values.to(src.dtype).reshape(src.shape)

    def _bias(self, like: Tensor, is_uint8: bool) -> Tensor | None:
        return like.new_full((1,), 0.5) if is_uint8 else None

    def _kernels_for(self, src: Tensor) -> tuple[Tensor, Tensor]:
        if src.dtype not in self._kernels:
            is_uint8 = src.dtype == torch.uint8
            sizes = [
                size if size > 0 else size_for(sigma, is_uint8)
                for size, sigma in zip(self._sizes, self._sigmas, strict=True)
            ]
            make = (lambda *of: fixed_kernel(*of) / 256) if is_uint8 else gaussian_kernel
            across, down = (
                torch.from_numpy(
                    make(size, sigma).astype(np.float32 if not is_uint8 else np.float64)
                )
                for size, sigma in zip(sizes, self._sigmas, strict=True)
            )
            self._kernels[src.dtype] = (
                across.reshape(1, 1, 1, -1).to(src.device),
                down.reshape(1, 1, -1, 1).to(src.device),
            )
        return self._kernels[src.dtype]


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
