"""What a phase leaves to whoever leads: named choices, and the decisions on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from torchstone.core.text import Text

Phase = Literal["plan", "execute", "interpret", "design", "guide", "verify"]
PHASES: tuple[Phase, ...] = ("plan", "execute", "interpret", "design", "guide", "verify")


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that can be chosen."""

    id: str
    title: Text
    recommended: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A question with its possible answers."""

    id: str
    phase: Phase
    question: Text
    options: tuple[Option, ...]
    least: int = 0
    most: int = 0
    """0: all of them may be chosen."""
    data: str = ""
    """What the choice is about: text of the analysed project, never an instruction."""

    @property
    def recommended(self) -> tuple[str, ...]:
        return tuple(option.id for option in self.options if option.recommended)


@dataclass(frozen=True, slots=True)
class Decision:
    """What was chosen, by whom, and why."""

    choice: str
    chosen: tuple[str, ...]
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace a text that stands exactly once in a file of the project."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that was thought of for one problem."""

    problem: str
    edits: tuple[TextEdit, ...]
    reason: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A fault that a driver sees by reading, and a check that fails as long as it is there."""

    path: str
    line: int
    claim: str
    severity: Literal["HIGH", "MEDIUM", "LOW"]
    check: str


MOST_EDITS = 8
MOST_EDIT_CHARACTERS = 20_000
"""A fix of one problem is small: what is larger is a rewrite, which nobody reads before accepting it."""


def refuse_size(edits: Sequence[TextEdit]) -> str:
    """Why a proposal is too large to be looked at; empty where it is not."""
    size = sum(len(item.path) + len(item.old) + len(item.new) for item in edits)
    if len(edits) <= MOST_EDITS and size <= MOST_EDIT_CHARACTERS:
        return ""
    return (
        f"{len(edits)} edits with {size:,} characters; at most {MOST_EDITS} edits with "
        f"{MOST_EDIT_CHARACTERS:,} characters are taken"
    )


class Driver(Protocol):
    """Whoever leads: makes choices, may propose changes, runs nothing."""

    name: str

    def choose(self, choice: Choice) -> Decision: ...

    def propose(self, problem: str, data: str, /) -> Proposal | None:
        """A change for a problem that has none; None where the driver has no idea."""
        ...

    def suggest(self, data: str, failed: str, /) -> tuple[Suggestion, ...]:
        """Faults in numbered source; `failed`: a suggestion whose check could not be run, and why."""
        ...


Record = Callable[[Decision], None]
"""Writes a decision down before anything follows from it."""


@dataclass(frozen=True, slots=True)
class Lead:
    """A driver whose decisions are checked and written down."""

    driver: Driver
    record: Record

    def choose(self, choice: Choice) -> Decision:
        """A decision that names known options only, in their order, within the limits."""
        decision = self.driver.choose(choice)
        known = [option.id for option in choice.options]
        chosen = tuple(item for item in known if item in decision.chosen)
        strange = [item for item in decision.chosen if item not in known]
        most = choice.most or len(known)
        if strange or not choice.least <= len(chosen) <= most:
            why = f"unknown: {', '.join(strange)[:200]}" if strange else f"{len(chosen)} chosen"
            decision = Decision(
                choice.id, choice.recommended,
                f"the answer could not be used ({why}); the recommended choice stands", "planner",
            )  # fmt: skip
        else:
            decision = Decision(choice.id, chosen, decision.reason[:2000], decision.by)
        self.record(decision)
        return decision
