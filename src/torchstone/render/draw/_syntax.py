"""Python source with its words in colour, for a page."""

from __future__ import annotations

import keyword
import re

from torchstone.render.markup import escape

_TOKENS = re.compile(
    r"(?P<c>#[^\n]*)"
    r"|(?P<s>[rbfuRBFU]{0,2}(?:\"\"\".*?(?:\"\"\"|\Z)|\'\'\'.*?(?:\'\'\'|\Z)|\"(?:\\.|[^\"\\\n])*\"?|\'(?:\\.|[^\'\\\n])*\'?))"
    r"|(?P<d>@[\w.]+)|(?P<n>\b\d[\w.]*)|(?P<w>[^\W\d]\w*)",
    re.S,
)
_WORDS = frozenset(keyword.kwlist)
_BUILT_IN = frozenset("self cls print range len int float str list dict tuple set super".split())


def coloured(source: str) -> str:
    """Escaped source, with comments, strings, decorators, numbers and keywords marked."""
    parts: list[str] = []
    at = 0
    for found in _TOKENS.finditer(source):
        kind = found.lastgroup or ""
        word = found.group()
        if kind == "w":
            kind = "k" if word in _WORDS else "b" if word in _BUILT_IN else ""
        parts.append(escape(source[at : found.start()], quote=False))
        inner = escape(word, quote=False)
        parts.append(f'<i class="{kind}">{inner}</i>' if kind else inner)
        at = found.end()
    parts.append(escape(source[at:], quote=False))
    return "".join(parts)
