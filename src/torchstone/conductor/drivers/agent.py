"""An outside agent leads: what it submitted is used, the planner does the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchstone.conductor.choices import Choice, Decision, Proposal, Suggestion
from torchstone.conductor.drivers.planner import Planner


@dataclass(slots=True)
class AgentDriver:
    """Choices by their id; a choice that was not submitted falls to the planner."""

    choices: Mapping[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    """Id of a choice → what was chosen, and the agent's reason."""
    name: str = "agent"
    _planner: Planner = field(default_factory=Planner)

    def choose(self, choice: Choice) -> Decision:
        known = self.choices.get(choice.id)
        if known is None:
            return self._planner.choose(choice)
        return Decision(choice.id, known[0], known[1], self.name)

    def propose(self, _problem: str, _data: str) -> Proposal | None:
        return None  # an agent submits its proposals before the design begins

    def suggest(self, _data: str, _failed: str) -> tuple[Suggestion, ...]:
        return ()  # it submits findings of its own
