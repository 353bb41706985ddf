"""A measure: a number worth showing that is no problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchstone.core.finding import Location
from torchstone.core.text import Text, Words

if TYPE_CHECKING:
    from torchstone.core.pictures import Evidence


@dataclass(frozen=True, slots=True)
class Measure:
    """A number with its unit and how it was obtained; pictures may stand beside it."""

    name: str
    value: float
    unit: str
    how: Words
    label: Text = Text("", "")
    location: Location = Location()
    spread: float | None = None
    evidence: tuple[Evidence, ...] = ()
    tool: str = "check"
