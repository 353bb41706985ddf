"""What entries for PIL share."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchstone.dataflow.migration.moves.cv2._images import image_of
from torchstone.dataflow.migration.specification import Refusal, refuse


def not_a_picture(value: Any, modes: str = "L RGB") -> Refusal | None:
    mode = getattr(value, "mode", None)
    if mode not in modes.split():
        return refuse(
            f"a picture of mode {mode}", f"图像模式为 {mode}",
            "convert it to RGB before the call", "请在调用前转换为 RGB",
        )  # fmt: skip
    if "transparency" in value.info or not all(value.size):
        return refuse("a transparent colour, or no pixels", "带透明色或没有像素")
    return None


def random_picture(rng: np.random.Generator, modes: str = "L RGB") -> Any:
    from PIL import Image

    mode = str(rng.choice(modes.split()))
    height, width = (int(size) for size in rng.integers(1, 48, 2))
    return Image.fromarray(image_of(rng, height, width, len(mode)))


def picture_of(rng: np.random.Generator, width: int, height: int, mode: str) -> Any:
    from PIL import Image

    return Image.fromarray(image_of(rng, height, width, len(mode)))
