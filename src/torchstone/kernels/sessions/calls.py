"""Calls of a candidate: what each did and what the referee said of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torchstone.kernels.sessions.workshop import Ended

POISONED = ("nan", "inf", "masked")
"""Families that put in what is not finite."""
LAID_OUT = ("strided", "unaligned", "expanded", "shared")
"""Families whose memory is laid out in another way than the problem's own."""
REARRANGED = ("strided", "expanded")
"""Of these, the ones in which elements do not lie one after the other."""
WRONG = ("unwritten", "pattern", "whole", "error")
"""Kinds of wrong values, the plainest first."""
_BUGS = frozenset({"IndexError", "UnboundLocalError", "NameError", "AttributeError", "KeyError"})


@dataclass(slots=True)
class Call:
    """One call of the candidate: the case, what it did, and what the referee said."""

    number: int
    family: str
    seed: int
    shapes: str
    resized: bool = False
    reply: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    ended: Ended | None = None
    digest: str = ""
    sent: list[str] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    answer_data: list[bytes] = field(default_factory=list)
    """The buffers of the answer, where launches were recorded."""
    sizes: list[int] = field(default_factory=list)
    """All sizes that may change."""

    @property
    def error(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self.reply.get("error")
        return found

    @property
    def refused(self) -> bool:
        """Loudly refused: another size or layout than the problem's own, no bug of its own."""
        if self.error is None or not (self.resized or self.family in LAID_OUT):
            return False
        if self.reply.get("faults"):
            return False
        # an array of nothing has no first element, and says so: that is a refusal, not an access
        if self.error.get("bounds"):
            return False
        return self.family == "empty" or self.error["kind"] not in _BUGS

    @property
    def work(self) -> int:
        """Interpreted operations; 0 for what is compiled."""
        return int(self.reply.get("work", 0))

    @property
    def form(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.facts.get("form", [])
        return found

    def wrong(self, kind: str) -> list[dict[str, Any]]:
        """What the referee found of one kind in `WRONG`."""
        outputs = self.facts.get("outputs", [])
        several = len(outputs) > 1
        return [
            {**item[kind], "output": number} if several else item[kind]
            for number, item in enumerate(outputs)
            if kind in item
        ]

    @property
    def causes(self) -> list[dict[str, Any]]:
        """Likely causes of what is wrong, as far as the referee looked for them."""
        found: list[dict[str, Any]] = self.facts.get("causes", [])
        return found

    def counts(self, name: str) -> list[int]:
        """What the referee counted under a name, per output."""
        return [item[name] for item in self.facts.get("outputs", []) if name in item]

    @property
    def right(self) -> bool:
        return (
            self.ended is None and self.error is None and not self.form
            and not any(self.wrong(kind) for kind in WRONG)
        )  # fmt: skip

    @property
    def name(self) -> str:
        return f"{self.family} seed {self.seed} ({self.shapes})"


def new_call(case: dict[str, Any], **more: Any) -> Call:
    """A call of a case as the referee lists it."""
    return Call(case["number"], case["family"], case["seed"], case["shapes"], case["resized"],
                sizes=case["sizes"], **more)  # fmt: skip


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
    load_error: dict[str, Any] | None = None
    build_error: dict[str, Any] | None = None
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
