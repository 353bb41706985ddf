"""Lines as Python counts them: `str.splitlines` also breaks at form feeds and U+2028."""

from __future__ import annotations

import re

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def split_lines(text: str) -> list[str]:
    """The lines of a text with their endings kept; joined they are the text again."""
    return _LINE.findall(text)
