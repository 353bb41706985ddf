"""Writes to items: `target[index] = value` and `target[index] += value`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from torchstone.dataflow.tracing.hooks.common import TOUCHED, Hook
from torchstone.dataflow.tracing.recorder import Recorder
from torchstone.dataflow.tracing.sites import FunctionSites, Site
from torchstone.dataflow.tracing.values import SCALAR

_BASIC = (int, slice, type(None))


def set_hook(site: Site, owner: FunctionSites, recorder: Recorder) -> Hook:
    number_of_site = recorder.add_site(site)

    def assign(value: Any, target: Any, index: Any, /) -> None:
        kind = recorder.values.kind_of(type(target))
        if not kind or kind >= SCALAR:
            target[index] = value
            return
        _write_item(
            recorder, site, number_of_site, owner, target, kind, index, value, operator.setitem
        )

    return assign


def update_item_hook(
    site: Site, owner: FunctionSites, recorder: Recorder, operate: Callable[[Any, Any], Any]
) -> Hook:
    number_of_site = recorder.add_site(site)

    def setitem(target: Any, index: Any, value: Any) -> None:
        target[index] = operate(target[index], value)

    def update(target: Any, index: Any, value: Any, /) -> None:
        kind = recorder.values.kind_of(type(target))
        if not kind or kind >= SCALAR:
            setitem(target, index, value)
            return
        _write_item(recorder, site, number_of_site, owner, target, kind, index, value, setitem)

    return update


def _write_item(
    recorder: Recorder,
    site: Site,
    number_of_site: int,
    owner: FunctionSites,
    target: Any,
    kind: int,
    index: Any,
    value: Any,
    write: Callable[[Any, Any, Any], None],
) -> None:
    values = recorder.values
    state = recorder.state()
    if state.depth >= recorder.limit:
        write(target, index, value)
        return
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
    name = site.targets[0] if site.targets else ""
    made = values.write(target, kind, name, held, _written_part(target, index))
    owner.quiet = TOUCHED
    state.events.append((
        number_of_site, -1, state.current, start, end, tuple(reads), (made,), (),
        (index_text(index),), "",
    ))  # fmt: skip


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
