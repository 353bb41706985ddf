"""A large output kept small: itself where there is room, else a weighted sum of every block.

The weights differ from element to element, so that neither a wrong value nor two that changed places
leave the sum as it is, up to what rounding does to a block. They are drawn anew for each answer: errors made to cancel
would have to know them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import torch

_BLOCK = 64
"""Elements of a block: their sums take a sixteenth of the memory, and one wrong element among so many
still stands out from the rounding of all of them."""
_PART = 1 << 22
"""Elements that are looked at together: temporary results of a few dozen megabytes."""
_MOST_PLACES = 64
"""Places that are named: more say nothing new."""


@dataclass(slots=True)
class Kept:
    """One output of the reference."""

    whole: torch.Tensor | None
    sums: torch.Tensor
    sizes: torch.Tensor
    """Of each block: the weighted sum, and the sum of all magnitudes."""
    weights: torch.Tensor
    """Of the elements of a block."""

    @property
    def size_bytes(self) -> int:
        parts = [self.sums, self.sizes, *([] if self.whole is None else [self.whole])]
        return sum(item.numel() * item.element_size() for item in parts)

    def doubtful(self, got: torch.Tensor, tolerance: float) -> list[int]:
        """Flat places where another output differs by more than the tolerance, at most a few of them."""
        found: list[int] = []
        for start, part in _parts(got):
            if self.whole is not None:
                known = self.whole.reshape(-1)[start : start + part.numel()]
                places = _different(part, known, tolerance).nonzero()[:, 0]
            else:
                sums, _ = _block_sums(part, self.weights)
                first = start // _BLOCK
                known = self.sums[first : first + len(sums)]
                slack = (
                    _BLOCK * tolerance
                    + _rounded(part.dtype) * self.sizes[first : first + len(sums)]
                )
                blocks = _apart(sums, known, slack).nonzero()[:, 0]
                places = blocks * _BLOCK
            found += [start + int(place) for place in places[:_MOST_PLACES]]
            if len(found) >= _MOST_PLACES:
                break
        return found[:_MOST_PLACES]

    def value_at(self, place: int) -> float:
        """What is known of an element: itself, or the mean size of its block."""
        if self.whole is not None:
            return float(self.whole.reshape(-1)[place])
        return float(self.sums[place // _BLOCK]) / _BLOCK


def keep_output(output: torch.Tensor, spare_bytes: int) -> Kept:
    """The output as it is where it fits into the spare memory, else the sums of its blocks."""
    nothing = torch.zeros(0, dtype=torch.float64)
    if output.numel() * output.element_size() <= spare_bytes:
        return Kept(output, nothing, nothing, nothing)
    generator = torch.Generator().manual_seed(secrets.randbits(63))
    weights = torch.rand(_BLOCK, generator=generator, dtype=torch.float64) + 0.5
    pairs = [_block_sums(part, weights) for _, part in _parts(output)]
    return Kept(None, torch.cat([a for a, _ in pairs]), torch.cat([b for _, b in pairs]), weights)


def _parts(tensor: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
    flat = tensor.reshape(-1)
    for start in range(0, flat.numel(), _PART):
        yield start, flat[start : start + _PART]


def _block_sums(part: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    wide = part.double()
    if wide.numel() % _BLOCK:
        wide = torch.nn.functional.pad(wide, (0, _BLOCK - wide.numel() % _BLOCK))
    rows = wide.view(-1, _BLOCK)
    return rows @ weights, rows.abs().sum(1)


def _rounded(dtype: torch.dtype) -> float:
    """What two right answers in a format may differ by, of their size."""
    return 8 * torch.finfo(dtype).eps if dtype.is_floating_point else 0.0


def _different(got: torch.Tensor, known: torch.Tensor, tolerance: float) -> torch.Tensor:
    if not got.is_floating_point():
        return got != known
    wide, other = got.double(), known.double()
    return _apart(wide, other, tolerance + _rounded(got.dtype) * other.abs().nan_to_num())


def _apart(one: torch.Tensor, two: torch.Tensor, slack: torch.Tensor) -> torch.Tensor:
    """Finite and further apart, or not both the same kind of not finite."""
    alike = (one == two) | (one.isnan() & two.isnan()) | ((one - two).abs() <= slack)
    return ~alike
