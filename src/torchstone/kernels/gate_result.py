"""What one gate says of a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torchstone.core.pictures import Evidence
from torchstone.core.text import NOTHING, Text, Words

OWN_SIZE = "size"
"""The gate that runs the problem's own inputs at their own sizes."""
Status = Literal["passed", "failed", "skipped", "gap", "undecided"]
"""`undecided`: on this problem the gate could not have failed, so that passing it would say nothing."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """What one gate said. `detail` is the same on every run: no times, paths or addresses."""

    gate: str
    status: Status
    detail: Text = NOTHING
    evidence: tuple[Evidence, ...] = ()
    close: Words = ""
    """For a gap: the command that would close it, or in words what would."""
    remedy: Text = NOTHING
    line: int = 0
    """Line of the candidate's source, where there is one."""
    limit: bool = False
    """A gap that is a limit of this machine: nothing is known of the candidate without it."""
    why: Text = NOTHING
    """Why this matters, where it is not what the gate says of all its failures."""
