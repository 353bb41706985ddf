"""Patterns of secrets that others publish: a list that is kept up to date, taken as data.

What is made by chance and long has a digit in it: a pattern is tried only near such a word, and there only where one of
its keywords stands. So texts without one cost a single search.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

_FILE = "published_rules.json"
_WORD = re.compile(r"[A-Za-z0-9+/=_.~-]{12,}+")
"""What may be a secret; the shortest that a rule knows has 14 characters."""
_BEFORE, _AFTER, _LONGEST = 64, 64, 1024
"""Characters before a word in which its keyword stands, after it in which it ends, and of the word itself."""


@dataclass(frozen=True, slots=True)
class PublishedRule:
    """One kind of secret."""

    id: str
    text: str
    entropy: float

    def find(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Secrets between two places: the first group that matched, or all of it."""
        for match in _compiled(self.text).finditer(text, start, end):
            group = next((i for i, part in enumerate(match.groups(), 1) if part), 0)
            if entropy_of(match[group]) >= self.entropy:
                yield match.span(group)


def published_secrets(text: str) -> Iterator[tuple[int, int]]:
    """From where to where secrets of the published kinds stand."""
    for word in _WORD.finditer(text):
        if not any(digit in word[0] for digit in "0123456789"):
            continue
        start, end = (
            max(0, word.start() - _BEFORE),
            min(word.end(), word.start() + _LONGEST) + _AFTER,
        )
        near = text[start:end].lower()
        for rule in dict.fromkeys(
            rule for keyword, rules in _by_keyword().items() if keyword in near for rule in rules
        ):
            yield from rule.find(text, start, end)


@functools.cache
def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text, re.ASCII)


def entropy_of(text: str) -> float:
    """Bits for each character, by how often each occurs (Shannon)."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


@functools.cache
def _by_keyword() -> dict[str, list[PublishedRule]]:
    """The rules in the file beside this one, by their keywords, which are in lower case."""
    data = json.loads(resources.files(__package__).joinpath(_FILE).read_text("utf-8"))
    rules: defaultdict[str, list[PublishedRule]] = defaultdict(list)
    for item in data["rules"]:
        for keyword in item["keywords"]:
            rules[keyword].append(
                PublishedRule(item["id"], item["pattern"], item.get("entropy", 0.0))
            )
    return dict(rules)
