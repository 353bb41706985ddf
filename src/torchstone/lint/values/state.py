"""The values of a function's names at one point of a path."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from torchstone.lint.values.value import NONE, UNKNOWN, Mark, Value, joined


@dataclass(slots=True)
class State:
    """Names and chains of names (`self.net`) with their values; changed as a path goes on."""

    names: dict[str, Value] = field(default_factory=dict)
    live: bool = True
    """False behind a `return`, `raise`, `break` or `continue`."""

    def copy(self) -> State:
        return State(dict(self.names), self.live)

    def bind(self, name: str, value: Value) -> None:
        """A name stands for something else from here on, and so do its attributes."""
        if name in self.names:
            prefix = f"{name}."
            for known in [known for known in self.names if known.startswith(prefix)]:
                del self.names[known]
        self.names[name] = value

    def change(self, mark: Mark | None, change: Callable[[Value], Value]) -> None:
        """An object is changed in place: under all names that it has."""
        if mark is not None:
            for name, value in self.names.items():
                if value.mark == mark:
                    self.names[name] = change(value)

    def take(self, other: State) -> None:
        self.names, self.live = other.names, other.live


def merged(states: Iterable[State], before: State) -> State:
    """The state after paths that meet; a name that one path does not bind keeps what it had."""
    live = [state for state in states if state.live]
    if not live:
        return State(dict(before.names), live=False)
    if len(live) == 1:
        return live[0]
    names = dict(live[0].names)
    for state in live[1:]:
        for name, value in state.names.items():
            known = names.get(name)
            if known is None:  # bound on some of the paths alone
                known = before.names.get(name, NONE if "." not in name else UNKNOWN)
            if known is not value:
                names[name] = joined(known, value)
        for name in names.keys() - state.names.keys():
            names[name] = joined(
                names[name], before.names.get(name, NONE if "." not in name else UNKNOWN)
            )
    return State(names)
