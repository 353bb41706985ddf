"""Which names torch has, in which releases, and which arguments they take: an index read from real releases.

`torch_names.txt` is written by `scripts/list_torch_names.py`, which describes its lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_suffix(".txt")
_ALIASES = {"axis": "dim", "axes": "dim", "keepdims": "keepdim", "a": "input", "x": "input",
            "x1": "input", "x2": "other"}  # fmt: skip
"""Names of numpy that torch takes for its own."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of torch."""

    names: frozenset[str] | None
    """The arguments that it takes by name; None when that is not known."""
    by_place: int | None
    """How many arguments go by position; None for any number."""
    first: str = ""
    last: str = ""
    """The releases that have it, where not all that were read do."""

    def takes(self, keyword: str) -> bool:
        """Whether an argument of this name is taken."""
        if self.names is None or "**" in self.names:
            return True
        return keyword in self.names or _ALIASES.get(keyword, "") in self.names


@cache
def names_of(home: str) -> dict[str, Entry]:
    """The names of a module or class of torch; empty for one that was not read."""
    lines = _sections().get(home, ())
    return dict(map(_entry, lines))


@cache
def _sections() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    rows: list[str] = []
    for line in _FILE.read_text("utf-8").splitlines():
        if line.startswith("["):
            rows = found[line[1:-1]] = []
        elif not line.startswith("#"):
            rows.append(line)
    return found


@cache
def words_of_torch() -> frozenset[str]:
    """The words that the names of torch and of their arguments are made of."""
    return frozenset(re.findall(r"[A-Za-z]+", _FILE.read_text("utf-8")))


def _entry(line: str) -> tuple[str, Entry]:
    text, _, span = line.partition(" ")
    first, _, last = span.partition("-")
    name, has, rest = text.partition("(")
    if not has:
        return name, Entry(None, None, first, last)
    given, _, count = rest[:-1].rpartition(";")
    by_place = None if count == "*" else int(count)
    return name, Entry(frozenset(given.split(",")), by_place, first, last)


def entry(full: str) -> Entry | None:
    """What is known of a full name such as `torch.nn.Linear`."""
    home, _, name = full.rpartition(".")
    return names_of(home).get(name)


def neighbour(name: str, home: str) -> str:
    """The name of a module or class that a misspelt one was meant to be; "" when there is none."""
    return closest(name, tuple(names_of(home)))


def closest(name: str, known: tuple[str, ...]) -> str:
    """The one name that two slips of the hand, or one in a short name, lead to."""
    slips = 2 if len(name) >= 8 else 1
    letters = set(name)
    found = [
        (distance, other)
        for other in known
        if abs(len(other) - len(name)) <= slips
        and len(letters.symmetric_difference(other)) <= 2 * slips
        and (distance := _distance(name, other, slips)) <= slips
    ]
    return min(found)[1] if found else ""


def _distance(one: str, other: str, most: int) -> int:
    """Letters to add, drop, change or swap; more than `most` counts as `most + 1`."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        after = [i]
        for j, wanted in enumerate(other, 1):
            cost = min(row[j] + 1, after[-1] + 1, row[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, before[j - 2] + 1)
            after.append(cost)
        if min(after) > most:
            return most + 1
        before, row = row, after
    return row[-1]
