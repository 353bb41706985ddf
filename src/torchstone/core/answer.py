"""The first screen of a report: what a person came for, as data that every format can show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchstone.core.evidence import State
from torchstone.core.text import Text, Words

if TYPE_CHECKING:
    from torchstone.core.pictures import Evidence


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure in large type, with a line below it that says what it means."""

    label: Text
    value: Words
    """As it is shown, unit included."""
    note: Words = ""
    state: State = "plain"


@dataclass(frozen=True, slots=True)
class Fact:
    """One setting or circumstance: what was looked at, and how."""

    label: Text
    value: Words


@dataclass(frozen=True, slots=True)
class Answer:
    """What was asked, in one sentence; the figures and pictures that belong to it; what to do next.

    Everything else of a report is a detail below it.
    """

    headline: Text
    state: State = "plain"
    about: tuple[Fact, ...] = ()
    """What was looked at: a model and its input, a run, a kernel and its problem."""
    warnings: tuple[Text, ...] = ()
    """What makes the figures partial; stands above them."""
    tiles: tuple[Tile, ...] = ()
    pictures: tuple[Evidence, ...] = ()
    lines: tuple[Text, ...] = ()
    """Sentences in the order of their weight: the largest stages, the episodes, the first case."""
    assumptions: tuple[Text, ...] = ()
    next: tuple[str, ...] = ()
    """Commands that say or do more."""
