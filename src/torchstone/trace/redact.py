"""Secrets are taken out before anything is hashed or written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

MARK = "[redacted]"
_SHORTEST = 8
_NAMED = re.compile(r"(?i)(key|token|secret|passw|credential)")


@dataclass(frozen=True, slots=True)
class _Rule:
    """What one kind of secret looks like, and letters that every such secret has. Letters are
    found twenty times faster than a pattern, which is then tried only where they stand."""

    letters: tuple[bytes, ...]
    """In lower case for a pattern that takes both cases."""
    pattern: re.Pattern[bytes]
    """Its first group, where it has one, stays."""
    before: int = 0
    """How many characters before the letters the pattern begins."""
    any_case: bool = False
    word: re.Pattern[bytes] | None = None
    """Where the pattern fails, it fails everywhere in the same word, which is then passed over."""


_TOKEN = rb"[A-Za-z0-9_\-]{16,}+"
_IS = rb"\s{0,9}+(?:[:=]|\xef\xbc\x9a)\s{0,9}+"
"""A colon, also that of Chinese text, or an equals sign."""
# Patterns are of bytes: letters of other scripts are then no part of a word, so that a key that
# stands right behind Chinese text is found. Every repetition is bounded or gives nothing back, so that
# time grows with the length of the text.
_RULES = (
    _Rule((b"-----BEGIN ",), re.compile(
        rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.S)),
    _Rule((b"k-",), re.compile(rb"\b[spr]k-" + _TOKEN), before=1),
    _Rule((b"gh", b"github_pat", b"glpat", b"hf", b"xox"), re.compile(
        rb"\b(?:gh[pousr]|github_pat|glpat|hf|xox[abprs])[_-]" + _TOKEN)),
    _Rule((b"AKIA", b"ASIA"), re.compile(rb"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    _Rule((b"AIza",), re.compile(rb"\bAIza[A-Za-z0-9_\-]{30,}+")),
    _Rule((b"eyJ",), re.compile(
        rb"\beyJ[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]*+"),
        word=re.compile(rb"[A-Za-z0-9_\-]++")),
    _Rule((b"://",), re.compile(rb"(://[^/\s:@]{1,200}+:)[^@\s/]{1,500}+(?=@)")),
    _Rule((b"authorization",), re.compile(
        rb"(?i)(\bauthorization" + _IS + rb"(?:(?:bearer|basic|token)\b\s{0,9}+)?)[!-~]++"), any_case=True),
    _Rule((b"bearer",), re.compile(rb"(?i)(\bbearer\s{1,9}+)[A-Za-z0-9._~+/\-]{12,}+=*+"), any_case=True),
    _Rule((b"api", b"secret", b"passw", b"access"), re.compile(
        rb"(?i)((?:api[_-]?key|secret|passw(?:or)?d|access[_-]?token)\b[\"']?" + _IS
        + rb"[\"']?)[^\s\"',;}\x80-\xff]{8,}+"), any_case=True),
)  # fmt: skip


def redactor(environment: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """A function that takes secrets out of a text: those of the environment, and what looks
    like one."""
    values = environment if environment is not None else os.environ
    named = {value.strip() for name, value in values.items() if _NAMED.search(name)}
    known = sorted((value for value in named if len(value) >= _SHORTEST), key=len, reverse=True)

    def redact(text: str) -> str:
        for value in known:
            if value in text:
                text = text.replace(value, MARK)
        data = text.encode("utf-8", "surrogatepass")
        secrets = _secrets(data)
        return _without(data, secrets).decode("utf-8", "surrogatepass") if secrets else text

    return redact


def _secrets(data: bytes) -> list[tuple[int, int]]:
    """From where to where each secret stands, in order."""
    lower = data.lower()  # of bytes: ASCII only, so that nothing moves
    return sorted(
        span
        for rule in _RULES
        for letters in rule.letters
        for span in _matches(rule, data, lower if rule.any_case else data, letters)
    )


def _matches(rule: _Rule, data: bytes, where: bytes, letters: bytes) -> Iterator[tuple[int, int]]:
    group = rule.pattern.groups
    place = where.find(letters)
    while place >= 0:
        match = rule.pattern.match(data, place - rule.before) if place >= rule.before else None
        if match:
            yield (match.end(1) if group else match.start()), match.end()
        place = where.find(letters, match.end() if match else _passed(rule, data, place))


def _passed(rule: _Rule, data: bytes, place: int) -> int:
    """Where to look on after letters that begin no secret."""
    word = rule.word.match(data, place) if rule.word else None
    return word.end() if word else place + 1


def _without(data: bytes, secrets: list[tuple[int, int]]) -> bytes:
    parts: list[bytes] = []
    done = 0
    for start, end in secrets:
        if start >= done:
            parts += (data[done:start], MARK.encode())
        done = max(done, end)
    return b"".join([*parts, data[done:]])
