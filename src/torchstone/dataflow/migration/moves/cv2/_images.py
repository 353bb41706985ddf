"""What entries for OpenCV share: which images they take, borders, random images."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.specification import Refusal, refuse

BORDER_CONSTANT, BORDER_REPLICATE, BORDER_REFLECT, BORDER_WRAP, BORDER_REFLECT_101 = range(5)
BORDER_DEFAULT = BORDER_REFLECT_101
BORDER_ISOLATED = 16
TABLES = 256
"""Tables of indices and weights that are kept for each kind, the latest: a pipeline has few sizes."""
CV_8U, CV_16S, CV_32F, CV_64F = 0, 3, 5, 6


def version() -> tuple[int, int]:
    """Major and minor version of the cv2 that is loaded."""
    text = str(getattr(sys.modules.get("cv2"), "__version__", "5.0"))
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def not_an_image(
    value: Any, dtypes: str = "uint8", channels: tuple[int, ...] = (1, 2, 3, 4)
) -> Refusal | None:
    """None for an image of these dtypes and channels, else why the call stays."""
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return refuse(f"{type(value).__name__} is not an array", f"{type(value).__name__} 不是数组")
    if str(value.dtype) not in dtypes.split():
        return refuse(
            f"no kernel for {value.dtype} images",
            f"没有针对 {value.dtype} 图像的算子",
            f"convert the image to {dtypes.split()[0]} before the call",
            f"请在调用前把图像转换为 {dtypes.split()[0]}",
        )
    if value.ndim not in (2, 3) or not all(value.shape):
        return refuse(f"an array of shape {value.shape}", f"数组形状为 {value.shape}")
    if (1 if value.ndim == 2 else value.shape[2]) not in channels:
        return refuse(f"{value.shape[2:]} channels", f"{value.shape[2:]} 个通道")
    return None


def unsupported(name: str, value: Any) -> Refusal:
    return refuse(
        f"no kernel for {name} = {value!r:.60}",
        f"没有支持 {name} = {value!r:.60} 的算子",
        f"another {name}, if the result allows it",
        f"若结果允许，请改用其他 {name}",
    )


@functools.lru_cache(maxsize=TABLES)
def border_index(size: int, before: int, after: int, kind: int, device: torch.device) -> Tensor:
    """For every place of a padded axis the index of its value. Made once on the host and kept on
    the device: the same sizes come back with every image."""
    at = np.arange(-before, size + after)
    if kind == BORDER_REPLICATE:
        at = at.clip(0, size - 1)
    elif kind == BORDER_WRAP:
        at = at % size
    elif kind == BORDER_REFLECT:
        at = at % (2 * size)
        at = np.where(at < size, at, 2 * size - 1 - at)
    elif size == 1:
        at = np.zeros_like(at)
    else:
        at = at % (2 * size - 2)
        at = np.where(at < size, at, 2 * size - 2 - at)
    return torch.from_numpy(at).to(device)


def pad(
    image: Tensor, top: int, bottom: int, left: int, right: int, kind: int, value: Any = 0
) -> Tensor:
    """The image with a border as OpenCV makes it; `value` is a number or one for each channel."""
    kind &= ~BORDER_ISOLATED
    height, width = image.shape[-2:]
    if kind == BORDER_CONSTANT:
        if not isinstance(value, list):
            sides = (left, right, top, bottom)
            return torch.nn.functional.pad(image, sides, value=value)
        shape = (*image.shape[:2], height + top + bottom, width + left + right)
        fill = torch.as_tensor(value, dtype=image.dtype, device=image.device)
        padded = fill.reshape(1, -1, 1, 1).expand(shape).clone()
        padded[..., top : top + height, left : left + width] = image
        return padded
    rows = border_index(height, top, bottom, kind, image.device)
    columns = border_index(width, left, right, kind, image.device)
    return image.index_select(-2, rows).index_select(-1, columns)


def windows(padded: Tensor, height: int, width: int) -> Tensor:
    """(N, C, H, W, height, width): every neighbourhood, as a view."""
    return padded.unfold(-2, height, 1).unfold(-2, width, 1)


def to_uint8(values: Tensor) -> Tensor:
    """Saturated; floats are rounded to even first."""
    if values.is_floating_point():
        values = values.round()
    return values.clamp(0, 255).to(torch.uint8)


def random_image(
    rng: np.random.Generator,
    channels: tuple[int, ...] = (1, 3),
    dtype: str = "uint8",
    largest: int = 48,
) -> np.ndarray:
    """Noise, a smooth image, or flat parts: each finds other mistakes."""
    height, width = (int(size) for size in rng.integers(1, largest + 1, 2))
    return image_of(rng, height, width, int(rng.choice(channels)), dtype)


def image_of(
    rng: np.random.Generator, height: int, width: int, channels: int, dtype: str = "uint8"
) -> np.ndarray:
    shape = (height, width, channels)
    kind = rng.integers(4)
    if kind == 0:
        rows, columns, bands = np.ogrid[:height, :width, :channels]
        waves = np.sin(rows / 5 + bands) + np.cos(columns / 7 - bands)
        image = ((waves + 2) * 63).astype(np.uint8)
    elif kind == 1:
        blocks = rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, channels), dtype=np.uint8)
        image = blocks.repeat(8, 0).repeat(8, 1)[:height, :width]
    elif kind == 2:
        image = (rng.integers(0, 2, shape) * 255).astype(np.uint8)
    else:
        image = rng.integers(0, 256, shape, dtype=np.uint8)
    image = np.ascontiguousarray(image[:, :, 0] if channels == 1 else image)
    if dtype == "uint8":
        return image
    if dtype.startswith("float"):
        return (image.astype(dtype) / 255).astype(dtype)
    return image.astype(dtype)
