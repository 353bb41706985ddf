"""What a format is: its element, the scales it can have, and how many values share one scale."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from torchstone.core.options import unknown
from torchstone.core.registry import modules_in
from torchstone.core.text import Text
from torchstone.runtime.number_formats import IntegerFormat, NumberFormat

Element = NumberFormat | IntegerFormat


@dataclass(frozen=True, slots=True)
class Format:
    """A way to store a tensor in fewer bits."""

    name: str
    about: Text
    element: Element
    bits: float
    """Of one value, with its share of the scales."""
    scales: tuple[str, ...]
    """Scale modes, the usual one first."""
    granularities: tuple[str, ...]
    """What may share a scale, the usual one first."""

    @property
    def scale(self) -> str:
        return self.scales[0]

    @property
    def granularity(self) -> str:
        return self.granularities[0]

    @property
    def is_wide(self) -> bool:
        """So many mantissa bits that a histogram of 11 of them cannot show its rounding."""
        return isinstance(self.element, NumberFormat) and self.element.mantissa_bits >= 7

    @property
    def saturates(self) -> bool:
        """Does a value beyond the range become the largest, rather than infinite?"""
        return isinstance(self.element, IntegerFormat) or self.element.exponent_bits < 5


@functools.cache
def all_formats() -> dict[str, Format]:
    """Every format by name, from the widest to the narrowest."""
    found = [
        item
        for module in modules_in("torchstone.tensors.formats")
        for item in getattr(module, "FORMATS", ())
    ]
    return {item.name: item for item in sorted(found, key=lambda item: (-item.bits, item.name))}


def find_formats(names: Sequence[str] | None) -> tuple[Format, ...]:
    """The formats of these names; all of them where none is named."""
    known = all_formats()
    for name in names or ():
        if name not in known:
            raise unknown("formats", str(name), tuple(known))
    return tuple(known[name] for name in names) if names else tuple(known.values())
