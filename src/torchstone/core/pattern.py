"""Regular expressions that are compiled when they are first used.

A linter starts far more often than most of its expressions match anything; compiling all of them
would take longer than reading a small project.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING


class _Lazy:
    def __init__(self, text: str, flags: int) -> None:
        self._args = (text, flags)
        self._made: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> object:
        if self._made is None:
            self._made = re.compile(*self._args)
        found = getattr(self._made, name)
        setattr(self, name, found)  # the next time it is at hand
        return found


if TYPE_CHECKING:

    def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
        """The same as `re.compile`, later."""
        return re.compile(text, flags)

else:

    def pattern(text: str, flags: int = 0) -> _Lazy:
        """The same as `re.compile`, later."""
        return _Lazy(text, flags)
