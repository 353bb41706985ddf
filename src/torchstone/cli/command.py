"""A command as the command line knows it, and what is said when there is none of that name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torchstone.core.errors import UsageError
from torchstone.core.text import Text


@dataclass(frozen=True, slots=True)
class Subcommand:
    """One command, or one part of a command that has several, with options of its own."""

    title: str
    """What a person types after `torchstone`: `cost`, `kernel verify`."""
    help: Text
    options: type | None
    run: Callable[[Any, Any], int]


class UnknownCommandError(UsageError):
    """A command that does not exist, with the nearest one that does."""

    def __init__(self, where: str, given: str, known: Sequence[str]) -> None:
        import difflib  # only a mistake pays for it

        shown = ", ".join(known)
        near = difflib.get_close_matches(given, known, n=1, cutoff=0.6)
        todo = (
            Text(f"did you mean {near[0]!r}?", f"您是否想用 {near[0]!r}？")
            if near
            else Text(f"commands: {shown}", f"可用命令：{shown}")
        )
        super().__init__(where, repr(given), Text(f"one of {shown}", f"{shown} 之一"), todo)

    def say(self, lang: str = "en") -> str:
        """One short line: the name, and what was probably meant."""
        if self.given == "''":
            return (
                f"缺少命令；{self.todo.zh}" if lang == "zh" else f"no command given; {self.todo.en}"
            )
        if lang == "zh":
            return f"未知命令 {self.given}；{self.todo.zh}"
        return f"unknown command {self.given}; {self.todo.en}"
