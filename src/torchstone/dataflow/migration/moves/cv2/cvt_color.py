"""cv2.cvtColor between BGR, RGB, BGRA, GRAY, HSV, YCrCb, YUV and to LAB."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2 import _colours as colours
from torchstone.dataflow.migration.moves.cv2._images import not_an_image, random_image, unsupported
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call


@dataclass(frozen=True, slots=True)
class _Conversion:
    name: str
    channels: tuple[int, ...]
    convert: Callable[[Tensor], Tensor]
    dtypes: str = "uint8"
    tolerance: float = 0
    relative: float = 0


_MOVED = "uint8 float32"


def _red_first(convert: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda image: convert(colours.swap(image))


def _to_red_first(convert: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda image: colours.swap(convert(image))


def _pair(
    code: int, name: str, convert: Callable[[Tensor], Tensor], **more: Any
) -> dict[int, _Conversion]:
    """From BGR, and from RGB by the next code."""
    return {
        code: _Conversion(f"BGR2{name}", (3,), convert, **more),
        code + 1: _Conversion(f"RGB2{name}", (3,), _red_first(convert), **more),
    }


def _back(
    code: int, name: str, convert: Callable[[Tensor], Tensor], **more: Any
) -> dict[int, _Conversion]:
    return {
        code: _Conversion(f"{name}2BGR", (3,), convert, **more),
        code + 1: _Conversion(f"{name}2RGB", (3,), _to_red_first(convert), **more),
    }


CODES: dict[int, _Conversion] = {
    0: _Conversion("BGR2BGRA", (3,), colours.with_alpha, _MOVED),
    1: _Conversion("BGRA2BGR", (4,), lambda image: image[:, :3], _MOVED),
    2: _Conversion("BGR2RGBA", (3,), lambda image: colours.with_alpha(colours.swap(image)), _MOVED),
    3: _Conversion("RGBA2BGR", (4,), lambda image: colours.swap(image)[:, :3], _MOVED),
    4: _Conversion("BGR2RGB", (3,), colours.swap, _MOVED),
    5: _Conversion("BGRA2RGBA", (4,), colours.swap, _MOVED),
    6: _Conversion("BGR2GRAY", (3,), colours.to_gray, _MOVED, relative=3e-7),
    7: _Conversion("RGB2GRAY", (3,), _red_first(colours.to_gray), _MOVED, relative=3e-7),
    8: _Conversion("GRAY2BGR", (1,), colours.from_gray, _MOVED),
    9: _Conversion("GRAY2BGRA", (1,), lambda image: colours.with_alpha(colours.from_gray(image)), _MOVED),
    10: _Conversion("BGRA2GRAY", (4,), colours.to_gray, _MOVED, relative=3e-7),
    11: _Conversion("RGBA2GRAY", (4,), _red_first(colours.to_gray), _MOVED, relative=3e-7),
    **_pair(36, "YCrCb", lambda image: colours.to_ycrcb(image, yuv=False)),
    **_back(38, "YCrCb", lambda image: colours.from_ycrcb(image, yuv=False)),
    **_pair(40, "HSV", lambda image: colours.to_hsv(image, full=False)),
    **_pair(44, "Lab", colours.to_lab),
    **_back(54, "HSV", lambda image: colours.from_hsv(image, full=False), tolerance=1),
    **_pair(66, "HSV_FULL", lambda image: colours.to_hsv(image, full=True)),
    **_pair(82, "YUV", lambda image: colours.to_ycrcb(image, yuv=True)),
    **_back(84, "YUV", lambda image: colours.from_ycrcb(image, yuv=True)),
}  # fmt: skip


def case(src: Any, code: int, dst: Any = None, dstCn: int = 0, hint: int = 0) -> Case | Refusal:
    if code not in CODES:
        return unsupported("code", code)
    if dstCn or hint:
        return unsupported("dstCn or hint", (dstCn, hint))
    conversion = CODES[code]
    if refused := not_an_image(src, conversion.dtypes, conversion.channels):
        return refused
    kind = str(src.dtype)
    return Case(
        f"{conversion.name} {kind}",
        conversion.tolerance if kind == "uint8" else 0,
        conversion.relative if kind != "uint8" else 0,
    )


def convert(src: Tensor, code: int, dstCn: int, hint: int) -> Tensor:
    return CODES[code].convert(src)


def sample(rng: np.random.Generator) -> Call:
    code = int(rng.choice(list(CODES)))
    conversion = CODES[code]
    dtype = str(rng.choice(conversion.dtypes.split()))
    return call(random_image(rng, conversion.channels, dtype), code)


MOVES = (OpSpec("cv2.cvtColor", case, sample, convert, {"src": "image"}, batched=True),)
