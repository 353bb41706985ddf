"""PIL.Image.Image.convert and PIL.Image.blend, with which ImageEnhance does all it does."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.pil._pictures import (
    not_a_picture,
    picture_of,
    random_picture,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call, refuse

_PAIRS = {("RGB", "L"), ("L", "RGB"), ("RGBA", "RGB"), ("RGB", "RGBA"), ("RGBA", "L")}


def convert_case(
    self: Any, mode: Any = None, matrix: Any = None, dither: Any = None, palette: Any = 0, colors: int = 256
) -> Case | Refusal:  # fmt: skip
    if refused := not_a_picture(self, "L RGB RGBA"):
        return refused
    if (self.mode, mode) not in _PAIRS or matrix is not None:
        return refuse(f"{self.mode} to {mode}", f"{self.mode} 转 {mode}")
    return Case(f"{self.mode} to {mode}")


def convert(
    self: Tensor, mode: str, matrix: None, dither: Any, palette: Any, colors: int
) -> tuple[Tensor, str]:
    if mode == "L":
        r, g, b = (self[:, index : index + 1].int() for index in range(3))
        return ((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16).to(torch.uint8), mode
    if self.shape[1] == 1:
        return self.expand(-1, 3, -1, -1), mode
    if mode == "RGBA":
        return torch.cat([self, torch.full_like(self[:, :1], 255)], 1), mode
    return self[:, :3], mode


def blend_case(im1: Any, im2: Any, alpha: float) -> Case | Refusal:
    if refused := not_a_picture(im1) or not_a_picture(im2):
        return refused
    if im1.mode != im2.mode or im1.size != im2.size:
        return refuse("pictures of different modes or sizes", "图像模式或尺寸不同")
    return Case(im1.mode)


def blend(im1: Tensor, im2: Tensor, alpha: float) -> tuple[Tensor, str]:
    mode = "L" if im1.shape[1] == 1 else "RGB"
    share = float(np.float32(alpha))
    if share in (0.0, 1.0):
        return (im2 if share else im1).clone(), mode
    one, other = im1.float(), im2.float()
    mixed = one + share * (other - one)
    return mixed.clamp(0, 255).trunc().to(torch.uint8), mode


def convert_sample(rng: np.random.Generator) -> Call:
    pair = sorted(_PAIRS)[int(rng.integers(len(_PAIRS)))]
    return call(random_picture(rng, pair[0]), pair[1])


def blend_sample(rng: np.random.Generator) -> Call:
    width, height = (int(size) for size in rng.integers(1, 40, 2))
    mode = str(rng.choice(["L", "RGB"]))
    return call(
        picture_of(rng, width, height, mode),
        picture_of(rng, width, height, mode),
        float(rng.choice([0, 1, 0.5, rng.uniform(-1, 3)])),
    )


MOVES = (
    OpSpec("PIL.Image.Image.convert", convert_case, convert_sample, convert, {"self": "picture"}, "picture", method=True),
    OpSpec("PIL.Image.blend", blend_case, blend_sample, blend, {"im1": "picture", "im2": "picture"}, "picture"),
)  # fmt: skip
