"""Operator counters, one file per family.

A file declares which operators it counts, the formula, and examples that were counted by hand;
put a file in this folder and it is found and tested. A counter sees the arguments as they were
given to the operator (tensors, usually on the meta device) and its output.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from torchstone.core.registry import names_in


class Count(NamedTuple):
    """What one call costs. `read` and `written` are None when the plain rule holds: every
    tensor that goes in is read once, every tensor that comes out is written once."""

    flops: int = 0
    vector: int = 0
    extra: int = 0
    read: int | None = None
    written: int | None = None
    causal: int = 0
    """The part of `flops` that a causal mask makes needless."""


Counter = Callable[[tuple[Any, ...], dict[str, Any], Any], Count]


class Family:
    """The counters of one file: `@FAMILY.counts("aten.mm")` over a function adds one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counters: dict[str, Counter] = {}
        self.examples: list[Example] = []

    def counts(self, *operators: str) -> Callable[[Counter], Counter]:
        def add(counter: Counter) -> Counter:
            for operator in operators:
                self.counters[operator] = counter
            return counter

        return add

    def example(self, call: Callable[[], Any], flops: int = 0, **more: Any) -> None:
        """A call on meta tensors whose cost was counted by hand (sums over all operators seen)."""
        self.examples.append(Example(call, flops, **more))


class Example(NamedTuple):
    """One hand-counted call; None means "not part of the example"."""

    call: Callable[[], Any]
    flops: int = 0
    vector: int | None = None
    read: int | None = None
    written: int | None = None
    extra: int | None = None
    causal: int | None = None
    why: str = ""
    """The count by hand, in words or a formula."""


@functools.cache
def counters() -> dict[str, tuple[str, Counter]]:
    """Every operator that has a counter: its family and the counter."""
    found: dict[str, tuple[str, Counter]] = {}
    for name in names_in(__name__):
        family: Family = importlib.import_module(f"{__name__}.{name}").FAMILY
        for operator, counter in family.counters.items():
            if operator in found:
                raise ValueError(f"{operator} is counted by {found[operator][0]} and {name}")
            found[operator] = (name, counter)
    return found
