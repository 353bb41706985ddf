"""Which calls train and which evaluate, by what a run did after them."""

from __future__ import annotations

from collections.abc import Iterator

from torchstone.conductor.probes.harvest.recording import Backward, Recording, TopCall
from torchstone.core.place import Place

Way = tuple[tuple[str, str], ...]


def training_calls(run: Recording) -> Iterator[TopCall]:
    """Calls of models that come by a way on which outputs go backward; not those without gradients, as of a
    teacher beside its student."""
    ways = training_ways(run)
    return (call for call in run.of(TopCall) if call.way in ways and call.grad)


def teaching_calls(run: Recording) -> Iterator[TopCall]:
    """Calls without gradients that come by a way on which other outputs go backward."""
    ways = training_ways(run)
    return (call for call in run.of(TopCall) if call.way in ways and not call.grad)


def evaluation_calls(run: Recording) -> Iterator[TopCall]:
    """Calls that come by a way on which no output ever goes backward."""
    ways = training_ways(run)
    if not ways:
        return iter(())
    return (call for call in run.of(TopCall) if call.way not in ways)


def training_ways(run: Recording) -> set[Way]:
    """Ways of calls that are directly followed by a backward pass."""
    found: set[Way] = set()
    last: TopCall | None = None
    for event in run.events:
        if isinstance(event, TopCall):
            last = event
        elif isinstance(event, Backward) and last is not None:
            found.add(last.way)
            last = None
    return found


def own_place(run: Recording, call: TopCall) -> Place:
    """The innermost line of a call that stands in a function which does not train."""
    shared = {step for way in training_ways(run) for step in way}
    apart = (place for place in call.stack if (place.path, place.scope) not in shared)
    return next(apart, call.place)
