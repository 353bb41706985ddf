"""A site: one place in the user's source whose call, operator or write is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Site:
    """Where it stands and what the source says there; nothing of it changes while it runs."""

    kind: str
    """`call`, `binary`, `unary`, `compare`, `item`, `attribute`, `set`, `update`, `update_item`."""
    op: str
    """Name of the operator (`Div`) or attribute (`T`); empty for calls."""
    file: str
    line: int
    function: str
    """Qualified name of the enclosing function; empty at the top of a module."""
    targets: tuple[str, ...] = ()
    """Names that the result is bound to."""
    inputs: tuple[str, ...] = ()
    """What the source calls the receiver and the arguments; empty where it has no name."""


@dataclass(slots=True, eq=False)
class FunctionSites:
    """The sites of one function, and whether any of them ever met data."""

    qualname: str
    file: str
    quiet: int = 0
    """Events without data so far; far below zero once data were met."""


def site_from(item: Sequence[Any]) -> Site:
    """The site that `dataclasses.astuple` and JSON made a list of."""
    kind, op, file, line, function, targets, inputs = item
    return Site(kind, op, file, line, function, tuple(targets), tuple(inputs))
