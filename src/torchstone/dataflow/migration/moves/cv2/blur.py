"""cv2.blur, cv2.boxFilter and cv2.medianBlur."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._images import (
    BORDER_DEFAULT,
    BORDER_REPLICATE,
    not_an_image,
    pad,
    random_image,
    to_uint8,
    unsupported,
    windows,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call

BORDERS = (0, 1, 2, 4)


def blur_case(
    src: Any, ksize: Any, dst: Any = None, anchor: Any = (-1, -1), borderType: int = BORDER_DEFAULT
) -> Case | Refusal:
    return box_case(src, -1, ksize, dst, anchor, True, borderType)


def box_case(
    src: Any, ddepth: int, ksize: Any, dst: Any = None, anchor: Any = (-1, -1), normalize: bool = True,
    borderType: int = BORDER_DEFAULT,
) -> Case | Refusal:  # fmt: skip
    if refused := not_an_image(src, "uint8 float32"):
        return refused
    if borderType & ~16 not in BORDERS:
        return unsupported("borderType", borderType)
    if tuple(anchor) != (-1, -1):
        return unsupported("anchor", anchor)
    if ddepth != -1 and not (ddepth == 0 and src.dtype == np.uint8):
        return unsupported("ddepth", ddepth)
    if src.dtype == np.float32:
        return Case("float32", 0, 2e-6)
    if (
        normalize and ksize[0] * ksize[1] == 2
    ):  # white becomes black or stays, by the place in the row
        return unsupported("ksize", tuple(ksize))
    if normalize and ksize[0] * ksize[1] > 256:
        return Case("uint8, more than 256 pixels", 1)  # sums times a float, in vectors
    return Case("uint8")


def blur(src: Tensor, ksize: Any, anchor: Any, borderType: int) -> Tensor:
    return box_filter(src, -1, ksize, anchor, True, borderType)


def box_filter(
    src: Tensor, ddepth: int, ksize: Any, anchor: Any, normalize: bool, borderType: int
) -> Tensor:
    width, height = int(ksize[0]), int(ksize[1])
    if borderType & ~16 != 0 and borderType & 16:
        width = 1 if src.shape[-1] == 1 and normalize else width
        height = 1 if src.shape[-2] == 1 and normalize else height
    total = box_sum(src, width, height, borderType)
    count = width * height
    if src.dtype != torch.uint8:
        return (total * (1.0 / count)).to(torch.float32) if normalize else total.to(torch.float32)
    if not normalize or count == 1:
        return to_uint8(total)
    if count <= 256:
        if count & (count - 1) == 0:  # OpenCV's rounding term is one too many where nothing is lost
            return to_uint8((total + count // 2 + 1) >> (count.bit_length() - 1))
        return to_uint8((2 * total + count) // (2 * count))
    return to_uint8(total.double() * (1.0 / count))


def box_sum(src: Tensor, width: int, height: int, border: int) -> Tensor:
    """Sums of neighbourhoods; ints for uint8, float64 for floats as OpenCV has them."""
    top, left = height // 2, width // 2
    padded = pad(src, top, height - 1 - top, left, width - 1 - left, border)
    values = padded.int() if src.dtype == torch.uint8 else padded.double()
    across = values.unfold(-1, width, 1).sum(-1, dtype=values.dtype)
    return across.unfold(-2, height, 1).sum(-1, dtype=values.dtype)


def median_case(src: Any, ksize: int, dst: Any = None) -> Case | Refusal:
    if refused := not_an_image(src, "uint8 float32 int16", (1, 3, 4)):
        return refused
    if ksize > 5 and src.dtype != np.uint8:
        return unsupported("ksize", ksize)
    return Case("any")


def median_blur(src: Tensor, ksize: int) -> Tensor:
    half = ksize // 2
    padded = pad(src, half, half, half, half, BORDER_REPLICATE)
    return windows(padded, ksize, ksize).flatten(-2).median(-1).values


def blur_sample(rng: np.random.Generator) -> Call:
    image = random_image(rng, (1, 3, 4), str(rng.choice(["uint8", "uint8", "float32"])))
    sizes = tuple(int(size) for size in rng.integers(1, 24 if rng.integers(3) == 0 else 9, 2))
    if rng.integers(2):
        return call(image, sizes)
    return call(image, sizes, borderType=int(rng.choice(BORDERS)))


def box_sample(rng: np.random.Generator) -> Call:
    inner = blur_sample(rng)
    return call(inner.args[0], -1, inner.args[1], normalize=bool(rng.integers(2)), **inner.kwargs)


def median_sample(rng: np.random.Generator) -> Call:
    image = random_image(rng, (1, 3, 4), largest=32)
    return call(image, int(rng.choice([3, 5, 7, 9])))


MOVES = (
    OpSpec("cv2.blur", blur_case, blur_sample, blur, {"src": "image"}, batched=True),
    OpSpec("cv2.boxFilter", box_case, box_sample, box_filter, {"src": "image"}, batched=True),
    OpSpec("cv2.medianBlur", median_case, median_sample, median_blur, {"src": "image"}, batched=True),
)  # fmt: skip
