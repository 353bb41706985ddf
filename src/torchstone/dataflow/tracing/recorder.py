"""What happened: one record for every call, operator and write that met data, per thread."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torchstone.dataflow.tracing.callees import Callee, Callees
from torchstone.dataflow.tracing.sites import Site
from torchstone.dataflow.tracing.values import (
    CONTAINER,
    HOLDER,
    IGNORED,
    RECORD,
    SCALAR,
    TENSOR,
    Values,
)

DEEPEST = 64
"""Calls inside each other, below those that are recorded, that still go through a hook."""
OFF = -1
"""The depth limit of a recorder that has stopped."""


class Event(NamedTuple):
    """One call, operator or write."""

    site: Site
    callee: Callee | None
    """None for operators."""
    parent: int
    """Place of the enclosing call in the same thread; -1 at the top."""
    start: int
    end: int
    """Nanoseconds of one clock."""
    reads: tuple[int, ...]
    makes: tuple[int, ...]
    """Values that it made or wrote."""
    returns: tuple[int, ...] = ()
    """Values that calls inside it made and that it returned."""
    constants: tuple[Any, ...] = ()
    error: str = ""
    inner: int = 0
    """Nanoseconds of it that were spent in calls which have a hook of their own, recorded or not."""

    @property
    def own(self) -> int:
        """Nanoseconds of its own."""
        return self.end - self.start - self.inner


NOTHING = Event(Site("call", "", "", 0, ""), None, -1, 0, 0, (), ())
"""Stands in the place of a call that never finished."""
RawEvent = tuple[Any, ...]
"""The fields of an Event with the numbers of its site and callee: plain tuples of numbers, which
the garbage collector soon stops looking at."""


@dataclass(frozen=True, slots=True)
class UnrecordedCalls:
    """Calls of one site that met no data."""

    site: Site
    callee: Callee
    calls: int
    own: int
    """Nanoseconds."""


class Unrecorded:
    """Calls of one site that left no event."""

    __slots__ = ("callee", "calls", "own")

    def __init__(self, callee: int) -> None:
        self.callee = callee
        self.calls = 0
        self.own = 0
        """Nanoseconds."""


class ThreadEvents:
    """The events of one thread, in the order in which they began."""

    __slots__ = ("current", "deeper", "depth", "events", "inner", "name", "unrecorded")

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: list[RawEvent | None] = []
        self.current = -1
        self.depth = 0
        self.deeper = 0
        """Calls under way below the depth that is recorded."""
        self.inner = 0
        """Nanoseconds in calls with a hook inside the call that is under way."""
        self.unrecorded: dict[int, Unrecorded] = {}
        """By site: calls that met no data and left no event."""


class Recorder:
    """Everything that the hooks of the sites write to."""

    def __init__(
        self, values: Values, callees: Callees, max_depth: int = 10, max_events: int = 500_000
    ) -> None:
        self.values = values
        self.callees = callees
        self.limit = self.deepest = max_depth
        self.max_events = max_events
        self.overflowed = False
        self.troubles: dict[str, str] = {}
        """Place → why what happened there is not in the graph."""
        self.threads: list[ThreadEvents] = []
        self.sites: list[Site] = []
        self.cuts: Counter[int] = Counter()
        """By site: calls that were deeper than is recorded."""
        self.hot: dict[int, int] = {}
        """By site: after how many short calls it was left alone."""
        self.states: dict[int, ThreadEvents] = {}
        self.after_message: Callable[[], None] | None = None
        """Called when a message to another process was sent."""
        self.quiet_limit = 256
        """Events without data after which a function is left alone: at 0.5 µs each, a tenth of a
        millisecond for a function; an image pipeline meets data within its first events."""

    def state(self) -> ThreadEvents:
        """Of the running thread."""
        ident = threading.get_ident()
        found = self.states.get(ident)
        if found is None:
            found = self.states[ident] = ThreadEvents(threading.current_thread().name)
            self.threads.append(found)
        return found

    def add_site(self, site: Site) -> int:
        self.sites.append(site)
        return len(self.sites) - 1

    def events_of(self, thread: ThreadEvents) -> list[Event]:
        """The finished events; the places of what never finished are taken by empty ones."""
        listed = self.callees.listed
        return [
            NOTHING
            if raw is None
            else Event(self.sites[raw[0]], listed[raw[1]] if raw[1] >= 0 else None, *raw[2:])
            for raw in thread.events
        ]

    def unrecorded_of(self, ident: int) -> list[UnrecordedCalls]:
        """Calls of a thread that left no event."""
        state = self.states.get(ident)
        found = state.unrecorded.items() if state is not None else ()
        return [
            UnrecordedCalls(
                self.sites[site], self.callees.listed[item.callee], item.calls, item.own
            )
            for site, item in found
        ]

    def start_anew(self) -> None:
        """In a forked process: what the parent recorded stays with the parent."""
        self.states.clear()
        self.threads.clear()
        self.values.facts.clear()
        self.values.links.clear()

    def stop(self) -> None:
        self.limit = OFF

    def trouble(self, site: Site, error: Exception) -> None:
        """An object could not be looked at: the program goes on, the report says so."""
        place = f"{site.file}:{site.line}"
        self.troubles.setdefault(place, f"{type(error).__name__}: {error}")

    def overflow(self) -> None:
        """Enough: what comes after is not recorded, and the report says so."""
        self.overflowed = True
        self.stop()

    def close_failed(self, state: ThreadEvents, index: int, event: RawEvent) -> None:
        """A call that raised: kept when it had data or calls inside it."""
        if event[5] or len(state.events) > index + 1:
            state.events[index] = event
        else:
            state.events.pop()
            self.note_unrecorded(state, event[0], event[1], event[4] - event[3] - event[10])

    def note_unrecorded(self, state: ThreadEvents, site: int, callee: int, own: int) -> None:
        """A call that leaves no event; its time is accounted for."""
        known = state.unrecorded.get(site)
        if known is None:
            known = state.unrecorded[site] = Unrecorded(callee)
        known.calls += 1
        known.own += own

    def is_idle(
        self,
        callee: Callee,
        func: Any,
        reads: list[int],
        makes: Sequence[int],
        returns: Sequence[int],
        kind: int,
    ) -> bool:
        """A call that only handed data on: it is no part of the graph."""
        if not callee.traced:
            return True
        if makes:
            return False
        bare = isinstance(func, type) and kind != HOLDER
        return callee.plumbing or (not returns and (not reads or bare))

    # ---- after a call ------------------------------------------------------------------------

    def made_by(
        self,
        result: Any,
        site: Site,
        callee: Callee | None,
        reads: list[int],
        inputs: tuple[Any, ...],
        kwargs: dict[str, Any],
        start: int,
        inside: bool = False,
    ) -> tuple[list[int], list[int]]:
        """Values that a call made, and values made inside it that it returned. `inside`: calls were
        recorded inside it, whose results it may have used (a generator that it was given)."""
        makes: list[int] = []
        returns: list[int] = []
        values = self.values
        if callee is not None and (callee.writes_first or callee.draws or kwargs):
            for target in _targets(callee, inputs, kwargs):
                kind = values.kind_of(type(target))
                if kind and kind < SCALAR:
                    name = _input_name(site, inputs, target)
                    makes.append(values.write(target, kind, name, reads))
        kind = values.kind_of(type(result))
        names = site.targets
        if kind == IGNORED:
            if type(result) is int and (reads or inside) and (callee is None or not callee.user):
                if number := values.make_int(result, names[0] if names else ""):
                    makes.append(number)
        elif kind == HOLDER:  # what a constructor computed and keeps
            for item, item_kind in values.held_by(result):
                self._note(item, item_kind, "", callee, reads, (), start, makes, returns, inside)
        elif kind in (CONTAINER, RECORD):
            for place, (item, item_kind) in enumerate(values.items(result, kind)):
                name = names[place] if place < len(names) else names[0] if names else ""
                if kind == RECORD and item_kind == SCALAR:
                    continue  # the numbers of a record were given to it
                self._note(item, item_kind, name, callee, reads, (), start, makes, returns, inside)
        else:
            self._note(
                result,
                kind,
                names[0] if names else "",
                callee,
                reads,
                inputs,
                start,
                makes,
                returns,
                inside,
            )
        return makes, returns

    def _note(
        self, obj: Any, kind: int, name: str, callee: Callee | None, reads: list[int],
        inputs: tuple[Any, ...], start: int, makes: list[int], returns: list[int],
        inside: bool,
    ) -> None:  # fmt: skip
        values = self.values
        if kind == SCALAR:
            number = values.number_of(obj, SCALAR)
            if number > start:
                returns.append(number)
            elif (reads or inside) and (callee is None or not callee.user):
                made = (
                    values.make_int(obj, name)
                    if type(obj) is int
                    else values.make(obj, SCALAR, name)
                )
                if made:
                    makes.append(made)
            return
        entry = values.known.get(id(obj))
        number = entry[1] if entry is not None and entry[0]() is obj else 0
        if not number:
            makes.append(values.make(obj, kind, name))
            if kind == TENSOR and callee is not None and callee.shares:
                values.share(obj, inputs[-1])
        elif number > start:
            if number not in makes:
                returns.append(number)
        elif any(obj is item for item in inputs):
            if callee is None or callee.user:
                return
            if callee.returns_input_unchanged:
                makes.append(values.alias(number, name))
            else:
                makes.append(values.write(obj, kind, name, reads))


def _targets(callee: Callee, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The objects that a call wrote to."""
    found: list[Any] = []
    if callee.draws and inputs:
        found.append(getattr(inputs[0], "_image", None))
    elif callee.writes_first and inputs:
        found.append(inputs[0])
    if kwargs:
        for key in ("out", "dst"):
            target = kwargs.get(key)
            found.extend(target if isinstance(target, tuple) else (target,))
        if kwargs.get("inplace") is True and inputs:
            found.append(inputs[0])
    return [item for item in found if item is not None]


def _input_name(site: Site, inputs: tuple[Any, ...], target: Any) -> str:
    for name, item in zip(site.inputs, inputs, strict=False):
        if item is target:
            return name
    return site.targets[0] if site.targets else ""
