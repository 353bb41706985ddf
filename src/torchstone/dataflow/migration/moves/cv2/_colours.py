"""Colour conversions in OpenCV's arithmetic. An image is (N, C, H, W), blue first."""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.cv2._images import to_uint8


def swap(image: Tensor) -> Tensor:
    """Red and blue change places; alpha stays."""
    if image.shape[1] == 3:
        return image.flip(1)
    return torch.cat([image[:, :3].flip(1), image[:, 3:]], 1)


def with_alpha(image: Tensor) -> Tensor:
    full = 255 if image.dtype == torch.uint8 else 1
    return torch.cat([image, torch.full_like(image[:, :1], full)], 1)


def to_gray(image: Tensor) -> Tensor:
    if image.dtype == torch.uint8:
        weighted = (image[:, :3] * _gray_weights(image.device)).sum(1, True, dtype=torch.int32)
        return ((weighted + (1 << 14)) >> 15).to(torch.uint8)
    b, g, r = image[:, 0:1], image[:, 1:2], image[:, 2:3]
    return b * 0.114 + g * 0.587 + r * 0.299


@functools.cache
def _gray_weights(device: torch.device) -> Tensor:
    return torch.tensor([3735, 19235, 9798], dtype=torch.int32).reshape(3, 1, 1).to(device)


def from_gray(image: Tensor) -> Tensor:
    return image.expand(-1, 3, -1, -1)


def to_hsv(image: Tensor, full: bool) -> Tensor:
    planes = image.int()
    b, g, r = planes.unbind(1)
    value, low = planes.amax(1), planes.amin(1)
    spread = value - low
    turn = 256 if full else 180
    hues, saturations = _divisions(turn, image.device)
    saturation = spread * _looked_up(saturations, value)
    green = torch.add(b - r, spread, alpha=2)
    blue = torch.add(r - g, spread, alpha=4)
    hue = torch.where(value == r, g - b, torch.where(value == g, green, blue))
    hue = hue * _looked_up(hues, spread)
    both = (torch.stack([hue, saturation], 1) + (1 << 11)) >> 12
    both[:, 0].remainder_(turn)  # a hue below 0 is one turn more
    return torch.cat([both, value[:, None]], 1).to(torch.uint8)


def _looked_up(table: Tensor, at: Tensor) -> Tensor:
    return table.index_select(0, at.reshape(-1)).reshape(at.shape)


@functools.cache
def _divisions(turn: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Divisions by multiplication in 12 bits."""
    by = np.arange(1, 256, dtype=np.float64)
    hues = np.concatenate([[0], np.rint((turn << 12) / (6 * by))])
    saturations = np.concatenate([[0], np.rint((255 << 12) / by)])
    tables = (torch.from_numpy(item.astype(np.int32)).to(device) for item in (hues, saturations))
    first, second = tables
    return first, second


_LANES = 32
"""Pixels in a vector on processors with AVX2; others have another number, hence the tolerance."""


def from_hsv(image: Tensor, full: bool) -> Tensor:
    h, s, v = (image[:, index].float() for index in range(3))
    hue = h * np.float32(6 / (255 if full else 180)).item()
    s, v = s * np.float32(1 / 255).item(), v * np.float32(1 / 255).item()
    sector = hue.floor()
    part = hue - sector
    sector = sector.long() % 6
    low, down, up = v * (1 - s), v * _one_less(s, part), v * _one_less(s, 1 - part)
    options = torch.stack([v, low, down, up])
    which = torch.tensor(
        [[1, 3, 0], [1, 0, 2], [3, 0, 1], [0, 2, 1], [0, 1, 3], [2, 1, 0]], device=image.device
    )
    channels = [options.gather(0, which[sector][..., i][None])[0] for i in range(3)]
    values = torch.stack(channels, 1) * 255
    # OpenCV's vector code cuts where the code for the last columns of a row rounds
    whole = values.shape[-1] // _LANES * _LANES
    return torch.cat([values[..., :whole].floor(), values[..., whole:].round()], -1).to(torch.uint8)


def _one_less(left: Tensor, right: Tensor) -> Tensor:
    """1 - left * right with one rounding, as the fused instruction has."""
    return (1 - left.double() * right.double()).float()


def to_ycrcb(image: Tensor, yuv: bool) -> Tensor:
    b, g, r = (image[:, index].int() for index in range(3))
    y = (b * 1868 + g * 9617 + r * 4899 + (1 << 13)) >> 14
    red, blue = (14369, 8061) if yuv else (11682, 9241)
    middle = (128 << 14) + (1 << 13)
    cr, cb = ((r - y) * red + middle) >> 14, ((b - y) * blue + middle) >> 14
    return to_uint8(torch.stack([y, cb, cr] if yuv else [y, cr, cb], 1))


def from_ycrcb(image: Tensor, yuv: bool) -> Tensor:
    y, second, third = (image[:, index].int() for index in range(3))
    cb, cr = (second - 128, third - 128) if yuv else (third - 128, second - 128)
    red, green_r, green_b, blue = (
        (18678, -9519, -6472, 33292) if yuv else (22987, -11698, -5636, 29049)
    )
    half = 1 << 13
    r = y + ((cr * red + half) >> 14)
    g = y + ((cb * green_b + cr * green_r + half) >> 14)
    b = y + ((cb * blue + half) >> 14)
    return to_uint8(torch.stack([b, g, r], 1))


def to_lab(image: Tensor) -> Tensor:
    gamma, root, weights = (table.to(image.device) for table in _lab_tables())
    b, g, r = (gamma[image[:, index].long()] for index in range(3))
    x, y, z = (root[((r * w[0] + g * w[1] + b * w[2] + (1 << 11)) >> 12).long()] for w in weights)
    scale, shift = (116 * 255 + 50) // 100, -((16 * 255 * (1 << 15) + 50) // 100)
    half = 1 << 14
    light = (scale * y + shift + half) >> 15
    a = (500 * (x - y) + 128 * (1 << 15) + half) >> 15
    beta = (200 * (y - z) + 128 * (1 << 15) + half) >> 15
    return to_uint8(torch.stack([light, a, beta], 1))


def _cube_root(x: np.ndarray) -> np.ndarray:
    """OpenCV's cube root puts its mantissa together from bits: what lies below the 24th is cut."""
    exact = np.cbrt(x.astype(np.float64))
    nearest = exact.astype(np.float32)
    return np.where(nearest > exact, np.nextafter(nearest, np.float32(0)), nearest)


@functools.cache
def _lab_tables() -> tuple[Tensor, Tensor, Tensor]:
    at = (np.arange(256, dtype=np.float32) * np.float32(1 / 255)).astype(np.float64)
    linear = np.where(at <= 0.04045, at / 12.92, ((at + 0.055) / 1.055) ** 2.4)
    gamma = np.rint(np.float32(255 * 8) * linear.astype(np.float32)).astype(np.int32)
    x = np.arange(256 * 3 // 2 * 8, dtype=np.float32) * np.float32(1 / (255 * 8))
    root = np.where(
        x < np.float32(216 / 24389),
        x * np.float32(841 / 108) + np.float32(16 / 116),
        _cube_root(x),
    )
    matrix = np.array(
        [
            [0.412453, 0.357580, 0.180423],
            [0.212671, 0.715160, 0.072169],
            [0.019334, 0.119193, 0.950227],
        ]
    )
    white = np.array([0.950456, 1.0, 1.088754])
    weights = np.rint(4096 * matrix / white[:, None]).astype(np.int32)
    return (
        torch.from_numpy(gamma),
        torch.from_numpy(np.rint(np.float32(1 << 15) * root).astype(np.int32)),
        torch.from_numpy(weights),
    )
