"""Words that functions lend to the files that call them.

A rule runs only on files that hold its words. A training loop whose `backward()` stands in a function of
another file does not hold that word; the function's name then stands for it.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

_FOLLOWED = (
    b"backward", b"DistributedDataParallel", b"FullyShardedDataParallel", b"DistributedSampler",
    b"DataLoader", b"autocast", b"inference_mode", b"all_reduce", b"all_gather", b"all_gather_object",
    b"barrier", b"init_process_group",
)  # fmt: skip
_NESTED = frozenset((b"forward", b"__call__"))  # every file has such names: they tell nothing
_RENAMED = re.compile(rb"\b(" + b"|".join(_FOLLOWED) + rb")[ \t]+as[ \t]+(\w+)")


@functools.cache
def _tokens(more: tuple[bytes, ...] = ()) -> re.Pattern[bytes]:
    """Definitions, and the words that are followed, under the names of one file's imports too."""
    words = b"|".join((*_FOLLOWED, *more))
    return re.compile(
        rb"^([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)|\b(" + words + rb")\b", re.M
    )


class Loan(NamedTuple):
    """The words of one function, and the names of its file under which it can be imported."""

    name: bytes
    words: frozenset[bytes]
    homes: frozenset[bytes]


def loans_of(path: str, data: bytes) -> list[Loan]:
    """What the functions of a file lend; classes lend what their methods hold."""
    if not any(word in data for word in _FOLLOWED):
        return []
    held: dict[bytes, set[bytes]] = {}
    owner = function = b""
    renamed = {alias: word for word, alias in _RENAMED.findall(data)}
    for match in _tokens(tuple(sorted(renamed))).finditer(data):
        indent, kind, name, word = match.groups()
        word = renamed.get(word, word)
        if kind == b"class":
            owner, function = name, b""
        elif kind == b"def":
            owner = owner if indent else b""
            function = name
        elif function:
            for holder in (function, owner):
                held.setdefault(holder, set()).add(word)
    homes = _homes(path)
    return [
        Loan(name, frozenset(words), homes)
        for name, words in held.items()
        if name and name not in _NESTED and not name.startswith(b"__")
    ]


def loan(path: str, name: str, words: Iterable[str]) -> Loan:
    """A loan that was kept from an earlier run."""
    return Loan(name.encode(), frozenset(word.encode() for word in words), _homes(path))


def _homes(path: str) -> frozenset[bytes]:
    pure = PurePosixPath(path.replace("\\", "/"))
    return frozenset(part.encode("utf-8", "replace") for part in (pure.stem, pure.parent.name))


class Lending:
    """All loans of a project."""

    def __init__(self, loans: Sequence[Loan]) -> None:
        self._by_name: dict[bytes, list[Loan]] = {}
        for loan in loans:
            self._by_name.setdefault(loan.name, []).append(loan)
        self._names = frozenset(self._by_name)
        rows = sorted((item.name, *sorted(item.words), *sorted(item.homes)) for item in loans)
        self.digest = hashlib.blake2b(repr(rows).encode(), digest_size=8).hexdigest()

    def to(self, words: set[bytes]) -> set[bytes]:
        """What a file with these words borrows: of functions that it names together with their file."""
        return {
            word
            for name in words & self._names
            for loan in self._by_name[name]
            if not words.isdisjoint(loan.homes)
            for word in loan.words
        }
