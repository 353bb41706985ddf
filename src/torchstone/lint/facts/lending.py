"""Words that functions lend to the files that call them.

A rule runs only on files that hold its words. A training loop whose `backward()` stands in a function of
another file does not hold that word; the function's name then stands for it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from torchstone.sources.files import WORDS

_FOLLOWED = (
    b"backward", b"DistributedDataParallel", b"FullyShardedDataParallel", b"DistributedSampler",
    b"DataLoader", b"autocast", b"inference_mode", b"all_reduce", b"all_gather", b"all_gather_object",
    b"barrier", b"init_process_group",
)  # fmt: skip
_IMPORTS = re.compile(
    rb"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|^[ \t]*import[ \t]+([\w., \t]+)",
    re.M,
)
_RENAMES = re.compile(rb"\b(\w+)[ \t]+as[ \t]+(\w+)")
_MARGIN = re.compile(rb"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)", re.M)
_LETTER = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class Loan(NamedTuple):
    """The words of one function, and the names of its file under which it can be imported."""

    name: bytes
    words: frozenset[bytes]
    homes: frozenset[bytes]


def loans_of(path: str, data: bytes) -> list[Loan]:
    """What the functions of a file lend; classes lend what their methods hold."""
    followed = {word: word for word in _FOLLOWED if word in data}
    if not followed:
        return []
    followed.update(_renamed(data, followed))
    held: dict[bytes, set[bytes]] = {}
    holder, seen, taken = b"", 0, 0
    for at, word in sorted(_places(data, followed)):
        # what an import of this file can name: the last function or class at its margin before
        for start in _margins(data, seen, at):
            margin = _MARGIN.match(data, start)
            if margin is not None:
                holder, taken = margin[1], margin.end()
                break
        seen = at
        if holder and at >= taken:
            held.setdefault(holder, set()).add(followed[word])
    homes = _homes(path)
    return [Loan(name, frozenset(words), homes) for name, words in held.items()]


def _renamed(data: bytes, followed: Iterable[bytes]) -> dict[bytes, bytes]:
    """The names of one file's imports for the words that are followed."""
    found: dict[bytes, bytes] = {}
    for at, word in sorted(_places(data, followed, called=False)):
        renames = _RENAMES.match(data, at)
        if renames is not None:
            found[renames[2]] = word
    return found


def _places(
    data: bytes, words: Iterable[bytes], called: bool = True
) -> Iterator[tuple[int, bytes]]:
    """Where words stand by themselves. One search for each is ten times as fast as an expression of
    all of them."""
    for word in words:
        at = data.find(word)
        while at >= 0:
            end = at + len(word)
            before, after = data[at - 1] if at else 32, data[end] if end < len(data) else 32
            if before not in _LETTER and after not in _LETTER:
                # `def backward` of an autograd.Function trains nothing: only a call of it counts
                if not called or word != b"backward" or data[at - 1 : end + 1] == b".backward(":
                    yield at, word
            at = data.find(word, end)


def _margins(data: bytes, start: int, end: int) -> Iterator[int]:
    """Where lines between two places begin with what may be a definition, the last one first."""
    while True:
        at = max(data.rfind(word, start, end) for word in (b"\ndef", b"\nclass", b"\nasync"))
        if at < 0:
            break
        yield at + 1
        end = at
    if not start:
        yield 0


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
    for module, taken, plain in _import_statements(data):
        names = set(taken.translate(WORDS).split())
        found.append((module.rpartition(b".")[2], names))
        found += [(part.rpartition(b".")[2], set()) for part in plain.replace(b",", b" ").split()]
    return found


def _import_statements(data: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """What `_IMPORTS` finds: tried only on lines that hold the word, a tenth of the time."""
    at = data.find(b"import")
    while at >= 0:
        match = _IMPORTS.match(data, data.rfind(b"\n", 0, at) + 1)
        if match is not None:
            yield match[1] or b"", match[2] or b"", match[3] or b""
        ended = match.end() if match is not None else at
        at = data.find(b"\n", ended)  # the next line that begins behind it
        at = data.find(b"import", at) if at >= 0 else at


def _is_imported(loan: Loan, imported: list[tuple[bytes, set[bytes]]]) -> bool:
    """By its name from its file or folder, or with its whole file."""
    return any(
        (loan.name in names and (not module or module in loan.homes))
        or not loan.homes.isdisjoint(names)
        or (not names and module in loan.homes)
        for module, names in imported
    )
