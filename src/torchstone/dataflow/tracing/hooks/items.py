"""Writes to items: `target[index] = value` and `target[index] += value`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from torchstone.dataflow.tracing.hooks.common import ROUNDS, SHORT_NS, TOUCHED, Calm, Hook
from torchstone.dataflow.tracing.recorder import Recorder
from torchstone.dataflow.tracing.sites import FunctionSites, Site
from torchstone.dataflow.tracing.values import SCALAR

_BASIC = (int, slice, type(None))


Write = Callable[[Any, Any, Any], None]
"""Of a target, an index and a value."""


def assign_item(value: Any, target: Any, index: Any, /) -> None:
    """`target[index] = value`, evaluated in the order of the language."""
    target[index] = value


def item_updater(operate: Callable[[Any, Any], Any]) -> Write:
    def update(target: Any, index: Any, value: Any, /) -> None:
        target[index] = operate(target[index], value)

    return update


def set_hook(site: Site, owner: FunctionSites, recorder: Recorder, calm: Calm) -> Hook:
    write = _written(site, owner, recorder, calm, operator.setitem)

    def assign(value: Any, target: Any, index: Any, /) -> None:
        write(target, index, value)

    return assign


def update_item_hook(
    site: Site,
    owner: FunctionSites,
    recorder: Recorder,
    calm: Calm,
    operate: Callable[[Any, Any], Any],
) -> Hook:
    return _written(site, owner, recorder, calm, item_updater(operate))


def _written(
    site: Site, owner: FunctionSites, recorder: Recorder, calm: Calm, write: Write
) -> Write:
    """A write that is recorded where the target is data."""
    number_of_site = recorder.add_site(site)
    rounds = busy = 0

    def recorded(target: Any, index: Any, value: Any, /) -> None:
        nonlocal rounds, busy
        kind = recorder.values.kind_of(type(target))
        is_data = bool(kind) and kind < SCALAR
        rounds += 1
        if is_data:
            busy += _write_item(
                recorder, site, number_of_site, owner, target, kind, index, value, write
            )
        else:
            write(target, index, value)
        if not rounds % ROUNDS and busy < rounds * SHORT_NS:
            calm(number_of_site, rounds)

    return recorded


def _write_item(
    recorder: Recorder,
    site: Site,
    number_of_site: int,
    owner: FunctionSites,
    target: Any,
    kind: int,
    index: Any,
    value: Any,
    write: Write,
) -> int:
    """The nanoseconds that it took."""
    values = recorder.values
    state = recorder.state()
    if state.depth >= recorder.limit:
        write(target, index, value)
        return 0
    reads: list[int] = []
    values.read(target, kind, site.targets[0] if site.targets else "", reads)
    held = list(reads)
    for item in (value, index):
        item_kind = values.kind_of(type(item))
        if item_kind:
            values.read(item, item_kind, site.inputs[0] if item is value else "", reads)
    start = perf_counter_ns()
    write(target, index, value)
    end = perf_counter_ns()
    state.inner += end - start
    name = site.targets[0] if site.targets else ""
    made = values.write(target, kind, name, held, _written_part(target, index))
    owner.quiet = TOUCHED
    state.events.append((
        number_of_site, -1, state.current, start, end, tuple(reads), (made,), (),
        (index_text(index),), "", 0,
    ))  # fmt: skip
    return end - start


def _written_part(target: Any, index: Any) -> Any:
    """The view that a basic index names; None for the whole."""
    parts = index if type(index) is tuple else (index,)
    if not all(type(part) in _BASIC or part is Ellipsis for part in parts):
        return None
    part = target[index]
    return part if hasattr(part, "shape") and getattr(part, "base", part) is not None else None


def index_text(index: Any) -> str:
    parts = index if type(index) is tuple else (index,)
    return ", ".join(
        repr(part) if type(part) in _BASIC or part is Ellipsis else type(part).__name__
        for part in parts
    )
