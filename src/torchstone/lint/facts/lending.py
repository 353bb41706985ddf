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

from torchstone.sources.callers import WORDS

_FOLLOWED = (
    b"backward", b"DistributedDataParallel", b"FullyShardedDataParallel", b"DistributedSampler",
    b"DataLoader", b"autocast", b"inference_mode", b"all_reduce", b"all_gather", b"all_gather_object",
    b"barrier", b"init_process_group",
)  # fmt: skip
_IMPORTS = re.compile(
    rb"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|^[ \t]*import[ \t]+([\w., \t]+)",
    re.M,
)
_RENAMED = re.compile(rb"\b(" + b"|".join(_FOLLOWED) + rb")[ \t]+as[ \t]+(\w+)")


@functools.cache
def _tokens(more: tuple[bytes, ...] = ()) -> re.Pattern[bytes]:
    """Definitions, and the words that are followed, under the names of one file's imports too."""
    # `def backward` of an autograd.Function trains nothing: only a call of it counts
    words = b"|".join((rb"(?<=\.)backward(?=\()", *_FOLLOWED[1:], *more))
    return re.compile(rb"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|\b(" + words + rb")\b", re.M)


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
    holder = b""  # what an import of this file can name: a function or class at its margin
    renamed = {alias: word for word, alias in _RENAMED.findall(data)}
    for match in _tokens(tuple(sorted(renamed))).finditer(data):
        name, word = match.groups()
        if name:
            holder = name
        elif holder:
            held.setdefault(holder, set()).add(renamed.get(word, word) or b"")
    homes = _homes(path)
    return [Loan(name, frozenset(words), homes) for name, words in held.items()]


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

    def to(self, words: set[bytes], data: bytes) -> set[bytes]:
        """What a file with these words borrows: of functions and classes that it imports."""
        near = [
            loan
            for name in words & self._names
            for loan in self._by_name[name]
            if not words.isdisjoint(loan.homes)
        ]
        if not near:
            return set()
        imported = _imported(data)
        return {word for loan in near if _is_imported(loan, imported) for word in loan.words}


def _imported(data: bytes) -> list[tuple[bytes, set[bytes]]]:
    """What the import statements of a file name: the last part of the module, and what is taken of
    it; for `import a.b` the module alone."""
    found = []
    for module, taken, plain in _IMPORTS.findall(data):
        names = set(taken.translate(WORDS).split())
        found.append((module.rpartition(b".")[2], names))
        found += [(part.rpartition(b".")[2], set()) for part in plain.replace(b",", b" ").split()]
    return found


def _is_imported(loan: Loan, imported: list[tuple[bytes, set[bytes]]]) -> bool:
    """By its name from its file or folder, or with its whole file."""
    return any(
        (loan.name in names and (not module or module in loan.homes))
        or not loan.homes.isdisjoint(names)
        or (not names and module in loan.homes)
        for module, names in imported
    )
