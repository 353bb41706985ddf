"""How a reader wants to see things: language, colour, width, how much."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.core.finding import Severity
from torchstone.core.text import Text, Words, words

_COLOURS = {
    "red": "31", "yellow": "33", "blue": "34", "green": "32", "cyan": "36", "magenta": "35",
    "bold": "1", "dim": "2",
}  # fmt: skip
SEVERITY_COLOUR = {Severity.HIGH: "red", Severity.MEDIUM: "yellow", Severity.LOW: "blue"}


@dataclass(frozen=True, slots=True)
class Style:
    """The reader's wishes; every renderer takes one."""

    lang: str = "en"
    colour: bool = False
    width: int = 0
    """Columns of the terminal; 0 where lines may be as long as they are."""
    detail: int = 1
    """0 is quiet (the bare findings), 1 the usual, 2 everything."""
    budget: int = 1500
    """Tokens, for the agent format."""
    folder: str = ""
    """Where relative paths start, for links that open an editor."""

    def paint(self, text: str, *colours: str) -> str:
        """The text in colour, when colour is wanted; what it says never depends on it."""
        if not self.colour or not text:
            return text
        codes = ";".join(_COLOURS[name] for name in colours)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def say(self, en: str, zh: str) -> str:
        return zh if self.lang == "zh" else en

    def words(self, value: Words) -> str:
        return words(value, self.lang)


def joined(*parts: Words) -> Text:
    """Parts one after the other, in both languages."""
    return Text("".join(words(p, "en") for p in parts), "".join(words(p, "zh") for p in parts))


_NARROWEST = 20
"""Columns below which broken lines would be harder to read than long ones."""


def wrapped(text: str, width: int, indent: str) -> list[str]:
    """A line broken at spaces, or between Chinese characters, where it would pass the width."""
    if width < _NARROWEST or cells(text) <= width:
        return [text]
    lines: list[str] = []
    current, room = "", 0
    for part in _pieces(text):
        size = cells(part)
        if current.strip() and room + size > width:
            lines.append(current.rstrip())
            current, room = indent, len(indent)
            part = part.lstrip()
        current += part
        room += cells(part)
    return [*lines, current]


def wrapped_inside(text: str, style: Style) -> list[str]:
    """The title of a piece of evidence, which stands some columns inside."""
    return wrapped(printable(text), style.width - INSIDE if style.width else 0, "  ")


INSIDE = 6
"""Columns before a row of evidence, at the most."""


def _pieces(text: str) -> list[str]:
    """Words with the space before them; every wide character on its own."""
    pieces: list[str] = []
    for char in text:
        if not pieces or char == " " or cells(char) == 2 or cells(pieces[-1][-1]) == 2:
            pieces.append(char)
        else:
            pieces[-1] += char
    return pieces


def printable(text: str) -> str:
    """Text from analysed files with nothing in it that would steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _SPACES else named(c) for c in text)


_SPACES = "\t\u00a0\u3000"
"""Spaces that Python does not count as printable."""


def named(char: str) -> str:
    """A character that must not act, by its number: `\\x1b`, `\\u202e`."""
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def cells(text: str) -> int:
    """How many columns a terminal needs for a text; Chinese characters take two."""
    if text.isascii():
        return len(text)
    import unicodedata  # plain text does without the tables

    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, width: int) -> str:
    """A text within so many columns; where it is cut, it ends in `…`."""
    if cells(text) <= width:
        return text
    kept = ""
    for char in text:
        if cells(kept) + cells(char) > width - 1:
            break
        kept += char
    return kept + "…"
