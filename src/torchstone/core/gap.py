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
    close_zh: str = ""
    """What closes it in Chinese, where that is said in words; a command is the same in every language."""

    def say_close(self, lang: str) -> str:
        return self.close_zh if lang == "zh" and self.close_zh else self.close

    def is_command(self) -> bool:
        """Can it be run as it stands, or is it said in words?"""
        return not self.close_zh
