"""A gap: what could not be looked at, why, and the command that would close it."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.core.finding import Location
from torchstone.core.text import Message


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that was not looked at; never silence."""

    subject: str
    reason: Message
    close: str
    """The command or act that would close the gap."""
    location: Location = Location()
    failed: bool = False
    """True when work that was started failed (exit 3), False when a part is merely absent."""
    tool: str = "check"
