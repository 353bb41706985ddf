"""Syntax of newer Pythons in words that this one reads, every part at its place.

A file for Python 3.12 to 3.15 does not parse on an older interpreter: nested quotes in f-strings,
`type X = …`, `def f[T](…)`, t-strings, `except A, B:`, `lazy import`. What is new is replaced by
something of the same width in bytes, so that lines and columns of everything else stay as written.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_STRING = re.compile(r"([A-Za-z]{0,3})(\"\"\"|'''|\"|')")
_WORD = re.compile(r"[^\W\d]\w*")
_GAP = re.compile(r"(?:[ \t\f]|\\\r?\n)*")
_ALIAS = re.compile(r"type([ \t]+)([^\W\d]\w*)(?=[ \t]*[=\[])")
_LAZY = re.compile(r"lazy([ \t]+)(?=import\b|from\b)")
_OPEN, _CLOSE = "([{", ")]}"


class _Field(NamedTuple):
    """An expression of an f-string."""

    start: int
    end: int


class _Literal(NamedTuple):
    """A string as it stands in the file."""

    start: int
    end: int
    prefix: str
    quotes: str
    fields: tuple[_Field, ...]
    is_new: bool
    """Whether an interpreter before 3.12 cannot read it."""


class UnreadableError(ValueError):
    """The text is no newer Python either."""


def rewritten(text: str) -> str:
    """The text in older syntax; the same text where nothing in it is new."""
    return _Rewriting(text).run()


class _Rewriting:
    def __init__(self, text: str) -> None:
        self.text = text
        self.out = list(text)
        self.depth = 0

    def run(self) -> str:
        at, fresh = 0, True
        try:
            while at < len(self.text):
                at, fresh = self._token(at, fresh)
        except (IndexError, UnreadableError, RecursionError):
            return self.text
        return "".join(self.out)

    def _token(self, at: int, fresh: bool) -> tuple[int, bool]:
        """The end of the token at a place, and whether a statement begins after it."""
        char = self.text[at]
        if char in " \t\f\r":
            return at + 1, fresh
        if char == "\n":
            return at + 1, self.depth == 0
        if char == "#":
            return self._end_of_line(at), fresh
        if char == "\\":
            return at + (3 if self.text[at + 1] == "\r" else 2), fresh
        if _STRING.match(self.text, at):
            return self._strings(at), False
        word = _WORD.match(self.text, at)
        if word is not None:
            return self._word(at, word[0], fresh), False
        self._count(char)
        return at + 1, char == ";" and self.depth == 0

    def _count(self, char: str) -> None:
        self.depth += (char in _OPEN) - (char in _CLOSE)

    def _end_of_line(self, at: int) -> int:
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end

    # -- statements -------------------------------------------------------------------------------

    def _word(self, at: int, word: str, fresh: bool) -> int:
        end = at + len(word)
        if word in ("def", "class"):
            return self._definition(end)
        if fresh and word == "type" and (alias := _ALIAS.match(self.text, at)):
            return self._alias(at, alias)
        if fresh and word == "lazy" and (lazy := _LAZY.match(self.text, at)):
            return self._lazy(at, lazy)
        if fresh and word == "except":
            self._handler(end)
        return end

    def _definition(self, at: int) -> int:
        """`def f[T](x)` loses its parameters of types."""
        gap = _GAP.match(self.text, at)
        name = _WORD.match(self.text, gap.end()) if gap else None
        if name is None:
            return at
        self._without_brackets(name.end())
        return name.end()

    def _without_brackets(self, at: int) -> None:
        if self.text[at : at + 1] == "[":
            self._blank(at, self._matching(at) + 1, joined=True)

    def _alias(self, at: int, alias: re.Match[str]) -> int:
        """`type X[T] = …` becomes `X = …`; what stands in the brackets is never looked at."""
        gap, name = alias[1], alias[2]
        self._put(at, name + " " * (len("type") + len(gap)))
        self._without_brackets(alias.end())
        return alias.end()

    def _lazy(self, at: int, lazy: re.Match[str]) -> int:
        end = self._end_of_line(at)
        statement = self.text[lazy.end() : end].partition("#")[0].rstrip()
        self._put(at, statement + " " * (lazy.end() - at))
        return lazy.end() + len(statement)

    def _handler(self, at: int) -> None:
        """`except A, B:` names a choice: `except A| B:` is one, too."""
        depth, commas = 0, []
        while at < len(self.text) and (depth or self.text[at] not in ":\n"):
            char = self.text[at]
            if char in "\"'#":
                return
            depth += (char in _OPEN) - (char in _CLOSE)
            if char == "," and not depth:
                commas.append(at)
            at += 1
        for comma in commas:
            self.out[comma] = "|"

    # -- strings ----------------------------------------------------------------------------------

    def _strings(self, at: int) -> int:
        """A run of strings that stand side by side: one of them may need all to change."""
        run = [self._literal(at)]
        while (following := self._next_string(run[-1].end)) >= 0:
            run.append(self._literal(following))
        if any(item.is_new for item in run):
            self._rewrite(run)
        for item in run:
            self._rename(item)
        return run[-1].end

    def _next_string(self, at: int) -> int:
        """Where the next string of a run begins; within brackets, lines and comments may part them."""
        while at < len(self.text):
            gap = _GAP.match(self.text, at)
            at = gap.end() if gap else at
            if self.depth and self.text[at : at + 1] in ("\n", "\r"):
                at += 1
            elif self.depth and self.text[at : at + 1] == "#":
                at = self._end_of_line(at)
            else:
                break
        return at if _STRING.match(self.text, at) else -1

    def _rename(self, item: _Literal) -> None:
        """A t-string that is left as it stands reads as an f-string."""
        if "t" in item.prefix.lower() and self.out[item.start] != " ":
            for place, char in enumerate(item.prefix):
                if char in "tT" and self.out[item.start + place] in "tT":
                    self.out[item.start + place] = "f"

    def _rewrite(self, run: list[_Literal]) -> None:
        """The expressions of a run in brackets: `(a, b)`, and `+(c)` for every further string."""
        opened = False
        for item in run:
            inner = item.start + len(item.prefix) + len(item.quotes)
            outer = item.end - len(item.quotes)
            parts = {place for field in item.fields for place in range(field.start, field.end)}
            for place in range(item.start, item.end):
                if place not in parts:
                    self._blank(place, place + 1)
            if not item.fields:
                continue
            self._put(inner - 1, "(")
            if opened:
                self._put(inner - 2, "+")
            for field in item.fields[1:]:
                self._put(field.start - 1, ",")
            self._put(outer, ")")
            opened = True
        if not opened:
            raise UnreadableError

    def _literal(self, at: int) -> _Literal:
        match = _STRING.match(self.text, at)
        assert match is not None
        prefix, quotes = match[1], match[2]
        if "f" in prefix.lower() or "t" in prefix.lower():
            return self._template(at, prefix, quotes)
        place = match.end()
        while not self.text.startswith(quotes, place):
            if self.text[place] == "\n" and len(quotes) == 1:
                raise UnreadableError
            place += 2 if self.text[place] == "\\" else 1
        return _Literal(at, place + len(quotes), prefix, quotes, (), False)

    def _template(self, at: int, prefix: str, quotes: str) -> _Literal:
        """An f-string or t-string, with its expressions."""
        place, fields, is_new = at + len(prefix) + len(quotes), [], False
        raw = "r" in prefix.lower()
        while not self.text.startswith(quotes, place):
            char = self.text[place]
            if char == "\n" and len(quotes) == 1:
                raise UnreadableError
            if self.text.startswith(("{{", "}}"), place):
                place += 2
            elif char == "{":
                place, found, new = self._field(place + 1, quotes)
                fields += found
                is_new |= new
            elif char == "\\" and not raw and self.text.startswith("\\N{", place):
                place = self.text.index("}", place) + 1
            else:
                place += 2 if char == "\\" and self.text[place + 1] not in "{}" else 1
        return _Literal(at, place + len(quotes), prefix, quotes, tuple(fields), is_new)

    def _field(self, at: int, quotes: str) -> tuple[int, list[_Field], bool]:
        """The end of `{…}`, its expressions with those of its format, and whether it is new."""
        end = self._expression(at)
        new = self._is_new(at, end, quotes)
        shown = self._without_sign(at, end)
        fields = [_Field(at, shown)]
        place = end
        if self.text[place] == "!":
            place += 2
        if self.text[place] == ":":
            place += 1
            while self.text[place] != "}":
                if self.text[place] == "{":
                    place, found, inner = self._field(place + 1, quotes)
                    fields += found
                    new |= inner
                else:
                    new |= self.text[place] == "\n" and len(quotes) == 1
                    place += 1
        if self.text[place] != "}":
            raise UnreadableError
        return place + 1, fields, new

    def _expression(self, at: int) -> int:
        """Where the expression ends that begins here; comments in it are taken away."""
        depth, place = 0, at
        while True:
            char = self.text[place]
            if _STRING.match(self.text, place) and not self.text[place - 1].isalnum():
                place = self._inner_strings(place)
                continue
            if char == "#":
                end = self._end_of_line(place)
                self._blank(place, end)
                place = end
                continue
            if not depth and (char in "}:" or (char == "!" and self.text[place + 1] != "=")):
                return place
            depth += (char in _OPEN) - (char in _CLOSE)
            word = _WORD.match(self.text, place)
            place = word.end() if word and not _STRING.match(self.text, place) else place + 1

    def _inner_strings(self, at: int) -> int:
        """Strings within an expression, which may themselves be new."""
        self.depth += 1
        try:
            return self._strings(at)
        finally:
            self.depth -= 1

    def _is_new(self, start: int, end: int, quotes: str) -> bool:
        body = self.text[start:end]
        lines = "\n" in body and len(quotes) == 1
        return (
            quotes in body
            or (quotes[0] in body and len(quotes) == 1)
            or lines
            or ("\\" in body or "#" in body)
        )

    def _without_sign(self, start: int, end: int) -> int:
        """The end of `x` in `{x = }`, which prints its own source."""
        body = self.text[start:end].rstrip()
        if body.endswith("=") and body[-2:] not in ("==", "<=", ">=", "!="):
            return start + len(body) - 1
        return end

    # -- writing ----------------------------------------------------------------------------------

    def _matching(self, at: int) -> int:
        """The bracket that closes the one at a place."""
        depth = 0
        while True:
            if _STRING.match(self.text, at) and not self.text[at - 1].isalnum():
                at = self._literal(at).end
                continue
            char = self.text[at]
            if char == "#":
                at = self._end_of_line(at)
                continue
            depth += (char in _OPEN) - (char in _CLOSE)
            if not depth:
                return at
            at += 1

    def _blank(self, start: int, end: int, joined: bool = False) -> None:
        """Spaces, as many as there are bytes; with `joined`, lines go on after a backslash."""
        for place in range(start, end):
            char = self.text[place]
            if char not in "\r\n":
                self.out[place] = " " * len(char.encode("utf-8", "replace"))
            elif joined and char == "\n" and place > start:
                self.out[place - 1] = "\\"

    def _put(self, at: int, text: str) -> None:
        self.out[at : at + len(text)] = list(text)
