"""All time of a traced block, by what it was spent on; the parts add up to the whole.

Every call with a hook has time of its own: its duration without the calls inside it. What is left of
the block's duration is that of its own statements. Time of Python code is divided further by where
the sampler found the thread: functions that lost their hooks, imports, and waiting have no calls
that are recorded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from torchstone.dataflow.tracing.assemble import event_name
from torchstone.dataflow.tracing.recorder import Event, UnrecordedCalls
from torchstone.dataflow.tracing.sampling import Spot
from torchstone.dataflow.tracing.sites import Site
from torchstone.dataflow.tracing.values import ValueFacts

Kind = Literal["operator", "library", "python", "import", "wait"]
MODULE = "<module>"


@dataclass(frozen=True, slots=True)
class TimeUse:
    """What the time of one function, or of one kind of work, comes to."""

    name: str
    kind: Kind
    seconds: float
    calls: int = 0
    """0 where they were not counted."""
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class ThreadTime:
    """What is known of the time of one thread."""

    events: Sequence[Event]
    facts: Mapping[int, ValueFacts]
    unrecorded: Sequence[UnrecordedCalls]
    spots: Mapping[Spot, int]
    wall: int | None = None
    """Nanoseconds; None for a worker, whose idle time is nobody's."""


_Row = tuple[str, Kind, str, int]
_IMPORTING: _Row = ("import", "import", "", 0)
_IMPORTERS = ("importlib", "_frozen_importlib", "_frozen_importlib_external")
"""Modules whose calls run modules: `import_module`, `exec_module` of a loader."""


def time_uses(thread: ThreadTime) -> list[TimeUse]:
    """The largest first. Their sum is the wall time of the thread."""
    own: Counter[_Row] = Counter()
    calls: Counter[_Row] = Counter()
    python: Counter[str] = Counter()
    for name, kind, site, count, spent in _calls(thread):
        if kind == "import":
            own[_IMPORTING] += spent
        elif kind == "python":
            python[name] += spent
            calls[name, kind, "", 0] += count
        else:
            own[name, kind, site.file, site.line] += spent
            calls[name, kind, site.file, site.line] += count
    if thread.wall is not None:
        python[MODULE] += max(thread.wall - own.total() - python.total(), 0)
    lines = _longest_lines(thread.spots)
    for row, spent in _divided(python, thread.spots).items():
        own[row] += spent
    made = []
    for (name, kind, file, line), spent in own.items():
        place = (file, line) if file or kind != "python" else lines.get(name, ("", 0))
        made.append(TimeUse(name, kind, spent * 1e-9, calls[name, kind, file, line], *place))
    return sorted(made, key=lambda item: -item.seconds)


def other_seconds(uses: Iterable[TimeUse]) -> float:
    """Work outside of operators, without imports and waiting: a plan leaves it where it is."""
    return sum(use.seconds for use in uses if use.kind in ("python", "library"))


def _calls(thread: ThreadTime) -> Iterable[tuple[str, Kind, Site, int, int]]:
    for event in thread.events:
        if event.end:
            name = event_name(event, thread.facts)
            user = event.callee is not None and event.callee.user
            yield name, "python" if user else "operator", event.site, 1, event.own
    for item in thread.unrecorded:
        kind: Kind = "python" if item.callee.user else "library"
        if item.callee.module in _IMPORTERS:
            kind = "import"
        yield item.callee.name, kind, item.site, item.calls, item.own


def _divided(python: Mapping[str, int], spots: Mapping[Spot, int]) -> Counter[_Row]:
    """Time of Python functions by the function, import or wait that the sampler saw inside them."""
    seen: dict[str, Counter[_Row]] = defaultdict(Counter)
    for spot, spent in spots.items():
        chain = (spot.function, *spot.callers, MODULE)
        home = next((name for name in chain if name in python), None)
        if home is not None:
            seen[home][_row_of(spot)] += spent
    found: Counter[_Row] = Counter()
    for name, spent in python.items():
        inside = seen.get(name)
        if not inside or not inside.total():
            found[name, "python", "", 0] += spent
            continue
        whole, left = inside.total(), spent
        for row, ticks in inside.items():
            part = spent * ticks // whole
            found[row] += part
            left -= part
        found[next(iter(inside))] += left  # what rounding down left over
    return found


def _row_of(spot: Spot) -> _Row:
    if spot.doing == "import":
        return _IMPORTING
    if spot.doing == "wait":
        return "wait", "wait", spot.file, spot.line
    return spot.function or MODULE, "python", "", 0


def _longest_lines(spots: Mapping[Spot, int]) -> dict[str, tuple[str, int]]:
    """Of every function the line where most of its time was seen."""
    best: dict[str, tuple[int, tuple[str, int]]] = {}
    for spot, spent in spots.items():
        if not spot.doing and spent > best.get(spot.function, (0, ("", 0)))[0]:
            best[spot.function] = (spent, (spot.file, spot.line))
    return {name: place for name, (_, place) in best.items()}
