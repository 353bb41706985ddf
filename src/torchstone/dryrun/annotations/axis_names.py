"""Names for axes: those that have the same size in every call share one.

Two axes that are equal by chance in one run are told apart by the calls with other batch sizes,
so a name is given to the set of sizes that an axis had, not to a number.
"""

from __future__ import annotations

from collections.abc import Iterable

from torchstone.dryrun.record import ObservedArray, ObservedFunction

Sizes = frozenset[int]
_ROLES = {
    1: ("length",),
    2: ("batch", "dim"),
    3: ("batch", "time", "dim"),
    4: ("batch", "channels", "height", "width"),
    5: ("batch", "channels", "depth", "height", "width"),
}
"""What the axes of a tensor are usually called, by their number."""
ANY = "..."
"""Stands where the number of axes differs from call to call."""


class AxisNames:
    """The names of one program: one size, one name, in all of its functions."""

    def __init__(self, functions: Iterable[ObservedFunction]) -> None:
        self._known: list[Sizes] = []
        self._names: dict[Sizes, str] = {}
        for function in functions:
            for shapes in shapes_of(function).values():
                for index, sizes in enumerate(axes(shapes)):
                    self._learn(sizes, index, len(shapes[0]))

    def text(self, shapes: list[tuple[int, ...]]) -> str:
        """The axes of a tensor that had these shapes: `batch time dim`."""
        if len({len(shape) for shape in shapes}) > 1:
            return ANY
        return " ".join("1" if sizes == {1} else self._name(sizes) for sizes in axes(shapes))

    def _name(self, sizes: Sizes) -> str:
        return self._names[self._class(sizes) or sizes]

    def _class(self, sizes: Sizes) -> Sizes | None:
        """The axis that this one is: equal sizes, or part of the sizes of one that varies."""
        for known in self._known:
            if known == sizes or (len(sizes) > 1 and sizes < known):
                return known
        return None

    def _learn(self, sizes: Sizes, index: int, rank: int) -> None:
        if sizes == {1} or self._class(sizes) is not None:
            return
        smaller = [one for one in self._known if len(one) > 1 and one < sizes]
        name = self._names[smaller[0]] if smaller else self._new_name(sizes, index, rank)
        self._known = [one for one in self._known if one not in smaller] + [sizes]
        self._names[sizes] = name
        for one in smaller:
            self._names[one] = name

    def _new_name(self, sizes: Sizes, index: int, rank: int) -> str:
        roles = _ROLES.get(rank, ())
        role = roles[index] if index < len(roles) else "axis"
        if rank == 1 and len(sizes) > 1:
            role = "batch"  # a vector whose length varies holds one value for each sample
        taken = set(self._names.values())
        number = 2
        name = role
        while name in taken:
            name, number = f"{role}{number}", number + 1
        return name


def axes(shapes: list[tuple[int, ...]]) -> list[Sizes]:
    """The sizes that each axis had; nothing where the number of axes differs."""
    if len({len(shape) for shape in shapes}) != 1:
        return []
    return [frozenset(sizes) for sizes in zip(*shapes, strict=True)]


def shapes_of(function: ObservedFunction) -> dict[str, list[tuple[int, ...]]]:
    """The shapes of each parameter and result over all calls."""
    found: dict[str, list[tuple[int, ...]]] = {}
    for item in arrays_of(function):
        found.setdefault(item.name, []).append(item.shape)
    return found


def arrays_of(function: ObservedFunction) -> Iterable[ObservedArray]:
    return (item for call in function.calls for item in call)
