"""Cropping, turning and mirroring of PIL images."""

from __future__ import annotations

import math
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

LEFT_RIGHT, TOP_BOTTOM, TURN_90, TURN_180, TURN_270, TRANSPOSE, TRANSVERSE = range(7)


def _mode(image: Tensor) -> str:
    return "L" if image.shape[1] == 1 else "RGB"


def crop_case(self: Any, box: Any = None) -> Case | Refusal:
    if box is None or box[2] < box[0] or box[3] < box[1]:
        return refuse("no box", "没有 box")
    return not_a_picture(self) or Case(self.mode)


def crop(self: Tensor, box: Any) -> tuple[Tensor, str]:
    left, top, right, bottom = (round(item) for item in box)
    result = torch.zeros(
        (*self.shape[:2], bottom - top, right - left), dtype=self.dtype, device=self.device
    )
    y0, y1 = max(top, 0), min(bottom, self.shape[-2])
    x0, x1 = max(left, 0), min(right, self.shape[-1])
    if y0 < y1 and x0 < x1:
        result[..., y0 - top : y1 - top, x0 - left : x1 - left] = self[..., y0:y1, x0:x1]
    return result, _mode(self)


def transpose_case(self: Any, method: Any) -> Case | Refusal:
    if int(method) not in range(7):
        return refuse(f"method = {method!r}", f"method = {method!r}")
    return not_a_picture(self) or Case(self.mode)


def transpose(self: Tensor, method: Any) -> tuple[Tensor, str]:
    kind = int(method)
    if kind == LEFT_RIGHT:
        result = self.flip(-1)
    elif kind == TOP_BOTTOM:
        result = self.flip(-2)
    elif kind in (TURN_90, TURN_180, TURN_270):
        result = self.rot90(kind - 1, (-2, -1))
    else:
        result = self.transpose(-2, -1)
        if kind == TRANSVERSE:
            result = result.flip((-2, -1))
    return result, _mode(self)


def rotate_case(
    self: Any, angle: float, resample: Any = 0, expand: Any = 0, center: Any = None, translate: Any = None,
    fillcolor: Any = None,
) -> Case | Refusal:  # fmt: skip
    if refused := not_a_picture(self):
        return refused
    if center is not None or translate is not None or fillcolor is not None:
        return refuse("a centre, a shift or a fill colour", "指定了 center、translate 或 fillcolor")
    turn = angle % 360
    if turn in (0, 180) or (turn in (90, 270) and (expand or self.size[0] == self.size[1])):
        return Case(f"right angle {self.mode}")
    if int(resample) != 0 or expand:
        return refuse(
            "an interpolated or expanded rotation",
            "插值旋转或扩展旋转",
            "resample=NEAREST without expand",
            "请使用 resample=NEAREST 且不扩展",
        )
    return Case(f"nearest {self.mode}")


def rotate(
    self: Tensor, angle: float, resample: Any, expand: Any, center: None, translate: None, fillcolor: None
) -> tuple[Tensor, str]:  # fmt: skip
    turn = angle % 360
    square = self.shape[-1] == self.shape[-2]
    if turn in (0, 180) or (turn in (90, 270) and (expand or square)):
        return self.rot90(int(turn // 90), (-2, -1)), _mode(self)
    return _turned(self, turn), _mode(self)


def _turned(image: Tensor, angle: float) -> Tensor:
    """Nearest pixels by a matrix in 16.16 fixed point."""
    height, width = image.shape[-2:]
    radians = -math.radians(angle)
    cos, sin = round(math.cos(radians), 15), round(math.sin(radians), 15)
    matrix = [cos, sin, 0.0, round(-math.sin(radians), 15), cos, 0.0]
    middle = (width / 2.0, height / 2.0)
    matrix[2] = matrix[0] * -middle[0] + matrix[1] * -middle[1] + matrix[2] + middle[0]
    matrix[5] = matrix[3] * -middle[0] + matrix[4] * -middle[1] + matrix[5] + middle[1]
    a, b, c, d, e, f = matrix
    column, row = np.arange(width)[None], np.arange(height)[:, None]
    x = (_fixed(c + a * 0.5 + b * 0.5) + row * _fixed(b) + column * _fixed(a)) >> 16
    y = (_fixed(f + d * 0.5 + e * 0.5) + row * _fixed(e) + column * _fixed(d)) >> 16
    inside = torch.from_numpy((x >= 0) & (x < width) & (y >= 0) & (y < height)).to(image.device)
    xs = torch.from_numpy(x.clip(0, width - 1)).to(image.device)
    ys = torch.from_numpy(y.clip(0, height - 1)).to(image.device)
    return torch.where(
        inside, image[..., ys, xs], torch.zeros((), dtype=image.dtype, device=image.device)
    )


def _fixed(value: float) -> int:
    return math.floor(value * 65536.0 + 0.5)


def crop_sample(rng: np.random.Generator) -> Call:
    picture = random_picture(rng)
    left, top = (int(item) for item in rng.integers(-5, 20, 2))
    return call(
        picture, (left, top, left + int(rng.integers(1, 40)), top + int(rng.integers(1, 40)))
    )


def transpose_sample(rng: np.random.Generator) -> Call:
    return call(random_picture(rng), int(rng.integers(7)))


def rotate_sample(rng: np.random.Generator) -> Call:
    if rng.integers(2):
        side = int(rng.integers(1, 40))
        return call(
            picture_of(rng, side, side, str(rng.choice(["L", "RGB"]))),
            float(rng.choice([0, 90, 180, 270])),
        )
    return call(random_picture(rng), float(rng.uniform(-200, 400)))


MOVES = (
    OpSpec("PIL.Image.Image.crop", crop_case, crop_sample, crop, {"self": "picture"}, "picture", method=True),
    OpSpec("PIL.Image.Image.transpose", transpose_case, transpose_sample, transpose, {"self": "picture"}, "picture", method=True),
    OpSpec("PIL.Image.Image.rotate", rotate_case, rotate_sample, rotate, {"self": "picture"}, "picture", method=True),
)  # fmt: skip
