"""cv2.flip, cv2.rotate, cv2.transpose: pixels change places."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._images import not_an_image, random_image, unsupported
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call

_DTYPES = "uint8 int8 int16 int32 float32 float64"


def flip_case(src: Any, flipCode: int, dst: Any = None) -> Case | Refusal:
    return not_an_image(src, _DTYPES) or Case("any")


def flip(src: Tensor, flipCode: int) -> Tensor:
    return src.flip((-2,) if flipCode == 0 else (-1,) if flipCode > 0 else (-2, -1))


def rotate_case(src: Any, rotateCode: int, dst: Any = None) -> Case | Refusal:
    if rotateCode not in (0, 1, 2):
        return unsupported("rotateCode", rotateCode)
    return not_an_image(src, _DTYPES) or Case("any")


def rotate(src: Tensor, rotateCode: int) -> Tensor:
    return src.rot90(-1 - rotateCode, (-2, -1))


def transpose_case(src: Any, dst: Any = None) -> Case | Refusal:
    return not_an_image(src, _DTYPES) or Case("any")


def transpose(src: Tensor) -> Tensor:
    return src.transpose(-2, -1)


def _image(rng: np.random.Generator) -> np.ndarray:
    return random_image(rng, (1, 2, 3, 4), str(rng.choice(["uint8", "float32", "int16"])))


def flip_sample(rng: np.random.Generator) -> Call:
    return call(_image(rng), int(rng.integers(-1, 2)))


def rotate_sample(rng: np.random.Generator) -> Call:
    return call(_image(rng), int(rng.integers(3)))


def transpose_sample(rng: np.random.Generator) -> Call:
    return call(_image(rng))


MOVES = (
    OpSpec("cv2.flip", flip_case, flip_sample, flip, {"src": "image"}, batched=True),
    OpSpec("cv2.rotate", rotate_case, rotate_sample, rotate, {"src": "image"}, batched=True),
    OpSpec("cv2.transpose", transpose_case, transpose_sample, transpose, {"src": "image"}, batched=True),
)  # fmt: skip
