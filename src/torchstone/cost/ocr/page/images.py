"""The views of a page, cut and filled as the vendor does it.

A page larger than a crop is stretched over a grid of crops whose aspect ratio is nearest to its
own; the whole page, padded with grey to a square, is the global view.
"""

from __future__ import annotations

import importlib
import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchstone.core.errors import InputError, UsageError
from torchstone.core.files import read_regular
from torchstone.core.text import Text
from torchstone.cost.ocr.config import AnalysisConfig
from torchstone.cost.ocr.model.shapes import OcrShape

PADDING = 127
"""Grey of the padding: int(0.5 x 255)."""
SYNTHETIC = 128
"""Grey of a synthetic page."""
MINIMUM_CROPS = 2
_LARGEST_FILE = 256 << 20
_LONGEST = 200
"""A thinner page would have no pixels left in the global view."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a page of some size is looked at."""

    width: int
    height: int
    grid: tuple[int, int]
    """Crops across and down; (1, 1) means none."""
    view: int
    """Side of the global view."""
    crop: int
    """Side of a crop."""
    stretch: bool
    """The page is stretched to the global view, and not padded."""

    @property
    def crops(self) -> int:
        columns, rows = self.grid
        return columns * rows if max(self.grid) > 1 else 0


def candidates(minimum: int, maximum: int) -> list[tuple[int, int]]:
    """All grids with so many crops, small ones first."""
    found = [
        (columns, rows)
        for columns in range(1, maximum + 1)
        for rows in range(1, maximum // columns + 1)
        if columns * rows >= minimum
    ]
    return sorted(found, key=lambda grid: grid[0] * grid[1])


def crop_grid(width: int, height: int, crop: int, maximum: int) -> tuple[int, int]:
    """The grid for a page: nearest aspect ratio; among equals the larger, if the page fills it.

    A page that is no larger than one crop is not cut.
    """
    if width <= crop and height <= crop:
        return (1, 1)
    best, distance = (1, 1), float("inf")
    for columns, rows in candidates(MINIMUM_CROPS, maximum):
        off = abs(width / height - columns / rows)
        fills = width * height > 0.5 * crop * crop * columns * rows
        if off < distance or (off == distance and fills):
            best, distance = (columns, rows), off
    return best


def plan(width: int, height: int, config: AnalysisConfig, shape: OcrShape) -> Plan:
    """How a page of this size is looked at under this configuration."""
    if config.crop_mode:
        grid = crop_grid(width, height, config.image_size, shape.maximum_crops)
        return Plan(width, height, grid, config.base_size, config.image_size, False)
    small = config.image_size <= shape.crop_size
    return Plan(width, height, (1, 1), config.image_size, config.image_size, small)


def views(page: Any, plan: Plan, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Crops (N, 3, H, W) and the global view (1, 3, H, W) of a page.

    `page` is a Pillow image, or None for a synthetic grey one. Without crops the first tensor is
    a single black one, as with the vendor. On the meta device nothing but shapes is made.
    """
    crop_size = (
        (plan.crops, 3, plan.crop, plan.crop) if plan.crops else (1, 3, plan.view, plan.view)
    )
    if device.type == "meta":
        return (
            torch.empty(crop_size, device=device, dtype=dtype),
            torch.empty((1, 3, plan.view, plan.view), device=device, dtype=dtype),
        )
    if page is None:
        whole = _grey_view(plan)
        crops = torch.full(crop_size, SYNTHETIC, dtype=torch.uint8)
    else:
        whole = _bytes_of(_padded(page, plan))
        crops = _cut(page, plan) if plan.crops else torch.zeros(crop_size, dtype=torch.uint8)
    black = torch.zeros(crop_size, dtype=dtype, device=device)
    small = normalised(crops).to(device=device, dtype=dtype) if plan.crops else black
    return small, normalised(whole).unsqueeze(0).to(device=device, dtype=dtype)


def normalised(pixels: Tensor) -> Tensor:
    """Bytes as numbers from -1 to 1: divided by 255, mean 0.5, deviation 0.5."""
    return (pixels.to(torch.float32) / 255 - 0.5) / 0.5


def fit(width: int, height: int, side: int) -> tuple[int, int, int, int]:
    """A page in a square: its new width and height, and what is left free left and above."""
    if width > height:
        wide, high = side, round(height / width * side)
    elif width < height:
        wide, high = round(width / height * side), side
    else:
        wide = high = side
    return wide, high, round((side - wide) * 0.5), round((side - high) * 0.5)


def _grey_view(plan: Plan) -> Tensor:
    if plan.stretch:
        return torch.full((3, plan.view, plan.view), SYNTHETIC, dtype=torch.uint8)
    view = torch.full((3, plan.view, plan.view), PADDING, dtype=torch.uint8)
    wide, high, left, top = fit(plan.width, plan.height, plan.view)
    view[:, top : top + high, left : left + wide] = SYNTHETIC
    return view


def _padded(page: Any, plan: Plan) -> Any:
    if plan.stretch:
        return page.resize((plan.view, plan.view))
    operations = importlib.import_module("PIL.ImageOps")
    return operations.pad(page, (plan.view, plan.view), color=(PADDING,) * 3)


def _cut(page: Any, plan: Plan) -> Tensor:
    columns, rows = plan.grid
    side = plan.crop
    stretched = _bytes_of(page.resize((columns * side, rows * side)))
    tiles = stretched.view(3, rows, side, columns, side).permute(1, 3, 0, 2, 4)
    return tiles.reshape(plan.crops, 3, side, side)


def _bytes_of(image: Any) -> Tensor:
    data = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
    return data.view(image.height, image.width, 3).permute(2, 0, 1).contiguous()


def open_page(path: Path | str) -> Any:
    """An image file as the vendor opens it: turned the right way up, in RGB."""
    pillow, operations = _pillow()
    try:
        buffer = io.BytesIO(read_regular(path, _LARGEST_FILE))
        with warnings.catch_warnings():
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            image = operations.exif_transpose(pillow.open(buffer)).convert("RGB")
    except pillow.UnidentifiedImageError:
        raise _unreadable(path, "an unknown kind of file") from None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    except (
        pillow.DecompressionBombError,
        pillow.DecompressionBombWarning,
        SyntaxError,
        ValueError,
    ) as error:
        raise _unreadable(path, str(error)) from None
    if max(image.size) > _LONGEST * min(image.size):
        raise _unreadable(path, f"{image.width} x {image.height}")
    return image


def _unreadable(path: Path | str, given: str) -> InputError:
    return InputError(
        str(path),
        given,
        Text(
            f"an image that Pillow can read, sides within {_LONGEST} : 1",
            f"Pillow 能读取的图像，长宽比不超过 {_LONGEST} : 1",
        ),
        Text("pass the path of a PNG or JPEG file", "请传入 PNG 或 JPEG 文件的路径"),
    )


def _pillow() -> tuple[Any, Any]:
    try:
        return importlib.import_module("PIL.Image"), importlib.import_module("PIL.ImageOps")
    except ImportError as error:
        raise UsageError(
            "cost: image",
            str(error),
            Text("the package Pillow, which reads images", "用于读取图像的 Pillow 包"),
            Text(
                "run `pip install 'torchstone[image]'`, or use a synthetic page",
                "请运行 `pip install 'torchstone[image]'`，或使用合成页面",
            ),
        ) from error
