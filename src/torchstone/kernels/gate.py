"""A gate: one thing that a kernel must be, with a good and a bad kernel of its own as its test."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torchstone.core.registry import modules_in
from torchstone.core.text import NOTHING, Text
from torchstone.kernels.candidate import IMPLEMENTATIONS, Implementation
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.sessions.run import Run

Check = Callable[[Run], GateResult]


@dataclass(frozen=True, eq=False)
class Gate:
    """One gate. `good` passes it and `bad` fails it, for the problem beside them."""

    name: str
    order: int
    title: Text
    why: Text
    remedy: Text = NOTHING
    stops: bool = False
    """After a failure here the later gates have nothing to look at."""
    needs_all: bool = False
    """Runs only when every gate before it has passed: it is costly."""
    implementations: tuple[Implementation, ...] = IMPLEMENTATIONS
    problem: str = ""
    """Source of a small problem, or the name of a shipped one."""
    good: Mapping[str, str] = field(default_factory=dict)
    bad: Mapping[str, str] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)

    def check(self, function: Check) -> Check:
        """Register the check of this gate."""
        self.checks.append(function)
        return function

    def run(self, run: Run) -> GateResult:
        """Ask the check."""
        return self.checks[0](run)


@functools.cache
def all_gates() -> tuple[Gate, ...]:
    """Every gate in the folder, cheapest first."""
    found = [module.GATE for module in modules_in("torchstone.kernels.gates")]
    return tuple(sorted(found, key=lambda gate: (gate.order, gate.name)))
