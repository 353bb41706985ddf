"""Data that go from one process to another stay the same data: their number travels with them.

Whatever multiprocessing sends (arguments and results of pools, queues, pipes, batches of loaders)
is pickled by `ForkingPickler`. While a program is traced it adds to arrays, tensors and images the
number of the value; where it arrives the new object is linked to it.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

from torchstone.dataflow.tracing.values import WEAK, Values

Number = Callable[[int], int]
"""From the number of a value in this process to the one that all processes know; called for every
value before it is sent."""
_PROTOCOL = 4
"""What multiprocessing pickles with; from 5 on arrays may share buffers instead of being copied."""
_OVERRIDE = "reducer_override"
"""What a pickler asks first, by this name."""
_tracing: list[tuple[Values, Number]] = []
"""The trace that runs in this process; the last one counts."""


def number_messages(values: Values, number: Number) -> None:
    """From now on messages carry numbers, and arrivals are linked."""
    _tracing.append((values, number))
    if _OVERRIDE not in vars(ForkingPickler):
        setattr(ForkingPickler, _OVERRIDE, _reduce)


def stop_numbering(values: Values) -> None:
    """ForkingPickler is as it was."""
    _tracing[:] = [item for item in _tracing if item[0] is not values]
    if not _tracing and vars(ForkingPickler).get(_OVERRIDE) is _reduce:
        delattr(ForkingPickler, _OVERRIDE)


def _reduce(pickler: Any, obj: Any) -> Any:
    """How a value is pickled: as it would be, and then made known where it arrives."""
    if not _tracing:
        return NotImplemented
    values, number = _tracing[-1]
    kind = values.kind_of(type(obj))
    if kind not in WEAK:
        return NotImplemented
    reduce = pickler.dispatch_table.get(type(obj))
    made = obj.__reduce_ex__(_PROTOCOL) if reduce is None else reduce(obj)
    if not isinstance(made, tuple):
        return made
    found: list[int] = []
    values.read(obj, kind, "", found)
    build, arguments, *rest = made
    return arrive, (tuple(map(number, found)), build, arguments), *rest


def arrive(numbers: tuple[int, ...], build: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """In the other process: the object, known as the values that were sent."""
    made = build(*arguments)
    if _tracing:
        _tracing[-1][0].arrive(made, numbers)
    return made
