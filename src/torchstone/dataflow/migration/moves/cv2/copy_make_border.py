"""cv2.copyMakeBorder."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._images import (
    not_an_image,
    pad,
    random_image,
    unsupported,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call


def case(
    src: Any, top: int, bottom: int, left: int, right: int, borderType: int, dst: Any = None, value: Any = None
) -> Case | Refusal:  # fmt: skip
    if refused := not_an_image(src, "uint8 int16 int32 float32 float64"):
        return refused
    if borderType & ~16 not in range(5):
        return unsupported("borderType", borderType)
    if borderType & ~16 == 0 and _fill(value, src) is None:
        return unsupported("value", value)
    return Case("any")


def _fill(value: Any, src: Any) -> list[float] | None:
    """The constant for each channel: OpenCV takes up to four, and zeros for the rest."""
    channels = 1 if src.ndim == 2 else src.shape[2]
    numbers = (
        [value] if isinstance(value, int | float) else list(value if value is not None else ())
    )
    if len(numbers) > 4 or not all(isinstance(item, int | float) for item in numbers):
        return None
    filled = [*numbers, 0, 0, 0, 0][:channels]
    if np.issubdtype(src.dtype, np.floating):
        return filled
    limits = np.iinfo(src.dtype)
    return [int(min(max(np.rint(item), limits.min), limits.max)) for item in filled]


def copy_make_border(
    src: Tensor, top: int, bottom: int, left: int, right: int, borderType: int, value: Any
) -> Tensor:
    return pad(src, top, bottom, left, right, borderType, value)


def _structure(arguments: dict[str, Any]) -> dict[str, Any]:
    image = arguments["src"][0].permute(1, 2, 0)
    like = np.empty((1, 1, image.shape[2]), str(image.dtype).removeprefix("torch."))
    return {**arguments, "value": _fill(arguments["value"], like)}


def sample(rng: np.random.Generator) -> Call:
    image = random_image(rng, (1, 3, 4), str(rng.choice(["uint8", "float32"])))
    sides = [int(side) for side in rng.integers(0, 9, 4)]
    border = int(rng.integers(5))
    if border == 0:
        value = rng.choice([0, 1, 2])
        fill = [None, 7, (1, 2.5, 300)][int(value)]
        return (
            call(image, *sides, border) if fill is None else call(image, *sides, border, value=fill)
        )
    return call(image, *sides, border)


MOVES = (
    OpSpec(
        "cv2.copyMakeBorder", case, sample, copy_make_border, {"src": "image"}, structure=_structure, batched=True
    ),
)  # fmt: skip
