"""The pages of copied layers are filled from those of the layers that ran."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchstone.cost.counting.equal_layers.copied import Copied, Disagreement
from torchstone.cost.records.books import Books, Scope
from torchstone.cost.records.ledger import FORWARD, inside


def fill(copies: Iterable[Copied], books: Books, held: dict[str, int]) -> dict[str, str]:
    """Check that the first and the last agree, then fill the pages of those between.
    Which layer stands for each copied one."""
    stands: dict[str, str] = {}
    for copied in copies:
        if not copied.copied:
            continue
        paths = copied.stack.paths
        first, template, last = (
            paths[index] for index in (copied.first, copied.template, copied.last)
        )
        pages, others = _pages(books, template), _pages(books, last)
        work = _work(pages, template)
        if work != _work(others, last) or work != _work(_pages(books, first), first):
            raise Disagreement(f"{first}, {template} and {last} do not agree")
        if not copied.agrees():
            raise Disagreement(f"{template} and {last} do not leave the same memory behind")
        for index in copied.copied:
            _fill_one(books, copied, index, pages, others, held)
            stands[paths[index]] = template
    return stands


def _pages(books: Books, path: str) -> list[Scope]:
    return [scope for scope in books.scopes.values() if inside(scope.module, path)]


def _fill_one(
    books: Books,
    copied: Copied,
    index: int,
    pages: list[Scope],
    others: list[Scope],
    held: dict[str, int],
) -> None:
    paths = copied.stack.paths
    first, last, here = paths[copied.template], paths[copied.last], paths[index]
    for page in pages:
        if page.phase != FORWARD:
            continue
        scope = books.scope(here + page.module[len(first) :], FORWARD)
        scope.calls = page.calls
        scope.peak = _moved(
            page.peak, copied.starts[copied.template].live, copied.starts[index].live
        )
    for page in others:
        if page.phase == FORWARD:
            continue
        scope = books.scope(here + page.module[len(last) :], page.phase)
        scope.calls = page.calls
        if index in copied.entries and copied.last in copied.entries:
            base = copied.entries[copied.last].live
            scope.peak = _moved(page.peak, base, copied.entries[index].live)
    for path in [name for name in held if inside(name, here)]:
        del held[path]  # the copy's output, which inside the layer has another owner
    for path in [name for name in held if inside(name, first)]:
        held[here + path[len(first) :]] = held[path]


def _moved(peak: int, base: int, here: int) -> int:
    return peak - base + here if peak else 0


def _work(pages: list[Scope], path: str) -> dict[Any, int]:
    """What the pages of a layer say, with its own path left out."""
    result: dict[Any, int] = {}
    for page in pages:
        for entry, calls in page.calls.items():
            key = (page.module[len(path) :], page.phase, entry.name, entry.dtype, entry.tally)
            result[key] = result.get(key, 0) + calls
    return result
