"""The deterministic planner: takes what the phase recommends, needs no key."""

from __future__ import annotations

from torchstone.conductor.choices import Choice, Decision, Proposal, Suggestion


class Planner:
    """The same choice for the same project, always."""

    name = "planner"

    def choose(self, choice: Choice) -> Decision:
        return Decision(choice.id, choice.recommended, "recommended by the phase", self.name)

    def propose(self, _problem: str, _data: str) -> Proposal | None:
        return None

    def suggest(self, _data: str, _failed: str) -> tuple[Suggestion, ...]:
        return ()
