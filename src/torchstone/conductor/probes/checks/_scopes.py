"""Which functions train and which evaluate, by what a run did in them."""

from __future__ import annotations

from collections.abc import Iterator

from torchstone.conductor.probes.harvest.recording import Backward, Recording, TopCall


def training_calls(run: Recording) -> Iterator[TopCall]:
    """Calls of models whose output a backward pass went through."""
    scopes = training_scopes(run)
    return (call for call in run.of(TopCall) if (call.place.path, call.place.scope) in scopes)


def evaluation_calls(run: Recording) -> Iterator[TopCall]:
    """Calls in functions of which no output ever goes backward."""
    scopes = training_scopes(run)
    if not scopes:
        return iter(())
    return (call for call in run.of(TopCall) if (call.place.path, call.place.scope) not in scopes)


def training_scopes(run: Recording) -> set[tuple[str, str]]:
    """Functions of which a call is directly followed by a backward pass."""
    found: set[tuple[str, str]] = set()
    last: TopCall | None = None
    for event in run.events:
        if isinstance(event, TopCall):
            last = event
        elif isinstance(event, Backward) and last is not None:
            found.add((last.place.path, last.place.scope))
            last = None
    return found
