"""Every sentence a person reads exists in English and in Chinese."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Text:
    """One sentence in both languages; `{name}` marks what the occasion fills in."""

    en: str
    zh: str

    def get(self, lang: str) -> str:
        return self.zh if lang == "zh" else self.en

    def placeholders(self) -> set[str]:
        return set(_BLANK.findall(self.en))


NOTHING = Text("", "")
Words = Text | str
"""What a person reads: a Text, or a plain string that is the same in every language (a name)."""


def words(value: Words, lang: str) -> str:
    return value.get(lang) if isinstance(value, Text) else value


@dataclass(frozen=True, slots=True)
class Message:
    """A message id with its texts and arguments; the renderer chooses the language."""

    id: str
    text: Text = NOTHING
    args: Mapping[str, str] = field(default_factory=dict)

    def say(self, lang: str = "en") -> str:
        return fill(self.text.get(lang), self.args)

    def __bool__(self) -> bool:
        return bool(self.text.en or self.text.zh)


_BLANK = re.compile(r"\{(\w+)\}")


def fill(template: str, args: Mapping[str, str]) -> str:
    """Put arguments into a template. Other braces stay as they are: texts may quote source."""
    if not args and not hasattr(args, "__missing__"):
        return template

    def put(match: re.Match[str]) -> str:
        try:
            return args[match[1]]
        except KeyError:
            return match[0]

    return _BLANK.sub(put, template)


_CLAUSE = re.compile(r"; |[；。]")
_WORD = re.compile(r"[ ，、；。]")
_LAST_WITH_SPACES = "\u2e7f"
"""Letters beyond it are those of scripts that put no spaces between words."""


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters: cut after a clause, else after a word, and marked."""
    if len(text) <= most:
        return text
    head = text[: most - 1]
    for end in (_CLAUSE, _WORD):
        found = [match.start() for match in end.finditer(head) if match.start() >= most // 2]
        if found:
            head = head[: found[-1]]
            break
    head = head.rstrip(" ,;:，；：、([（")
    return head + ("…" if head[-1:] > _LAST_WITH_SPACES else " …")


def shortened_both(text: Text, most: int) -> Text:
    """Both languages, each cut where it is too long."""
    return Text(shortened(text.en, most), shortened(text.zh, most))


def locale_lang() -> str:
    """The language of the user's locale, as far as we speak it."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(variable, ""):
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"
