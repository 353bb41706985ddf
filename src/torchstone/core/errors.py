"""Errors that state four facts: where, what was given, what was expected, what to do.

TorchstoneError            the user's mistake or a broken input: no traceback, exit 2
├── UsageError             wrong flags or arguments
├── ConfigError            a configuration file that cannot be used
└── InputError             a path, file or document that cannot be used
"""

from __future__ import annotations

from torchstone.core.text import Text


class TorchstoneError(Exception):
    """A mistake that the user can fix; shown as one line, never as a traceback."""

    def __init__(
        self, where: str, given: Text | str, expected: Text | str, todo: Text | str
    ) -> None:
        self.where = where
        self.given = given.en if isinstance(given, Text) else given
        self.given_zh = given.zh if isinstance(given, Text) else given
        self.expected = expected if isinstance(expected, Text) else Text(expected, expected)
        self.todo = todo if isinstance(todo, Text) else Text(todo, todo)
        super().__init__(self.say("en"))

    def say(self, lang: str = "en") -> str:
        if lang == "zh":
            return f"{self.where}：得到 {self.given_zh}，应为 {self.expected.zh}；{self.todo.zh}"
        return f"{self.where}: got {self.given}, expected {self.expected.en}; {self.todo.en}"


class UsageError(TorchstoneError):
    """Wrong flags or arguments on the command line or in a call."""


class ConfigError(TorchstoneError):
    """A configuration file that cannot be used."""


class InputError(TorchstoneError):
    """A path, file or document that cannot be used."""
