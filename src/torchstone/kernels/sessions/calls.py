"""Calls of a candidate: what each did and what the referee said of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torchstone.core.text import NOTHING, Text
from torchstone.kernels.messages.facts import Facts, PlannedCase, Told, Wrong
from torchstone.kernels.messages.to_candidate import Reply
from torchstone.kernels.sessions.workshop import Ended

POISONED = ("nan", "inf", "masked")
"""Families that put in what is not finite."""
LAID_OUT = ("strided", "unaligned", "expanded", "shared")
"""Families whose memory is laid out in another way than the problem's own."""
REARRANGED = ("strided", "expanded")
"""Of these, the ones in which elements do not lie one after the other."""
_BUGS = frozenset({"IndexError", "UnboundLocalError", "NameError", "AttributeError", "KeyError"})


@dataclass(slots=True)
class Call:
    """One call of the candidate: the case, what it did, and what the referee said."""

    case: PlannedCase
    reply: Reply = field(default_factory=Reply)
    facts: Facts = field(default_factory=Facts)
    ended: Ended | None = None
    digest: str = ""
    sent: list[str] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    answer_data: list[bytes] = field(default_factory=list)
    """The buffers of the answer, where launches were recorded."""

    @property
    def family(self) -> str:
        return self.case.family

    @property
    def shapes(self) -> str:
        return self.case.shapes

    @property
    def error(self) -> Told | None:
        return self.reply.error

    @property
    def refused(self) -> bool:
        """Loudly refused: another size or layout than the problem's own, no bug of its own."""
        if self.error is None or not (self.case.resized or self.family in LAID_OUT):
            return False
        # an array of nothing has no first element, and says so: that is a refusal, not an access
        if self.reply.faults or self.error.bounds:
            return False
        return self.family == "empty" or self.error.kind not in _BUGS

    @property
    def turned_away(self) -> bool:
        """Raised, and not by a mistake: it may be written for other sizes."""
        faults = self.reply.faults or self.reply.operators
        return (
            self.error is not None
            and not faults
            and not self.error.bounds
            and self.error.kind not in _BUGS
        )

    @property
    def work(self) -> int:
        """Interpreted operations; 0 for what is compiled."""
        return self.reply.work

    def wrong(self, kind: str) -> list[Wrong]:
        """What the referee found of one kind in `WRONG`."""
        outputs = self.facts.outputs
        found = [(number, item.of_kind(kind)) for number, item in enumerate(outputs)]
        number_of = (lambda number: number) if len(outputs) > 1 else (lambda _: -1)
        return [replace(item, output=number_of(i)) for i, item in found if item is not None]

    @property
    def right(self) -> bool:
        return self.ended is None and self.error is None and self.facts.right

    @property
    def name(self) -> str:
        return f"{self.family} seed {self.case.seed} ({self.shapes})"


@dataclass(slots=True)
class Burst:
    """Calls with nothing between them, under one setting of torch and of the model."""

    setting: str
    calls: list[Call] = field(default_factory=list)
    overlapping: list[str] = field(default_factory=list)
    """Families of the answers that lie in the memory of another one."""
    tires: bool = False
    """After many calls the answer to the same question was another one."""
    ring: bool = False
    """Of many answers, all of them kept, two lie in the same memory."""
    ended: Ended | None = None


@dataclass(slots=True)
class Main:
    """What the first session showed."""

    ended: Ended | None = None
    limit: Text = NOTHING
    """Of this machine: what kept the session from coming to its end."""
    load_error: Told | None = None
    build_error: Told | None = None
    named: bool = True
    """The names of its weights are the problem's, or what they hold tells which is which."""
    weights: int = 0
    own: list[Call] = field(default_factory=list)
    families: list[Call] = field(default_factory=list)
    repeated: list[Call] = field(default_factory=list)
    swapped: Call | None = None
    swapped_differs: bool = False
    reweighed: list[tuple[str, Call]] = field(default_factory=list)
    """Calls after the weights were changed, and how they were."""
    weights_move: bool = False
    """Some of these calls would have shown the weights before."""
    refilled: list[tuple[Call, Call]] = field(default_factory=list)
    bursts: list[Burst] = field(default_factory=list)
    small: bool = False
    small_own: bool = False
    left_out: int = 0
    """Larger sizes that would take an interpreter too long."""
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def calls(self) -> list[Call]:
        return [*self.own, *self.families]

    @property
    def steady(self) -> Call:
        """The call that is repeated: the last of the problem's own, which may be a smaller one."""
        return self.own[-1]
