"""Which values share a scale: tiles of a matrix of rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from torchstone.core.text import Text

GRANULARITIES = ("tensor", "row", "column", "128x128", "1x128", "block32", "block16")
"""From the coarsest to the finest."""
GRANULARITY_NAMES = {
    "tensor": Text("tensor", "整个张量"),
    "row": Text("row", "行"),
    "column": Text("column", "列"),
    "128x128": Text("128×128 tile", " 128×128 块"),
    "1x128": Text("1×128 tile", " 1×128 块"),
    "block32": Text("block of 32", "每 32 个一块"),
    "block16": Text("block of 16", "每 16 个一块"),
}

_TILES = {"128x128": (128, 128), "1x128": (1, 128), "block32": (1, 32), "block16": (1, 16)}


@dataclass(frozen=True, slots=True)
class Tiles:
    """A matrix cut into tiles of one size; the last ones may be padded with zeros."""

    values: torch.Tensor
    """Of shape (tile rows, height, tile columns, width)."""
    rows: int
    columns: int

    def largest(self) -> torch.Tensor:
        """The largest finite magnitude of each tile, to be multiplied with `values`."""
        size = self.values.abs()
        return torch.where(size.isfinite(), size, 0.0).amax(dim=(1, 3), keepdim=True)

    def joined(self, values: torch.Tensor) -> torch.Tensor:
        """Tiles of this cut as a matrix again, without the padding."""
        down, height, across, width = values.shape
        return values.reshape(down * height, across * width)[: self.rows, : self.columns]


def cut(matrix: torch.Tensor, granularity: str) -> Tiles:
    """The matrix in tiles that share a scale."""
    rows, columns = matrix.shape
    height, width = {
        "tensor": (rows, columns), "row": (1, columns), "column": (rows, 1),
    }.get(granularity) or _TILES[granularity]  # fmt: skip
    height, width = max(height, 1), max(width, 1)
    height = min(height, max(rows, 1))  # a tile higher than the matrix would be mostly padding
    padding = (-columns % width, -rows % height)
    if any(padding):
        matrix = functional.pad(matrix, (0, padding[0], 0, padding[1]))
    shape = (matrix.shape[0] // height, height, matrix.shape[1] // width, width)
    return Tiles(matrix.reshape(shape), rows, columns)
