"""Recorded samples that travel between processes of another kind than DataLoader workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchstone.dataflow.migration.deferred.batch import grouped, replay
from torchstone.dataflow.migration.deferred.handle import Deferred
from torchstone.dataflow.migration.deferred.loader import record_or_repeat
from torchstone.dataflow.migration.deferred.steps import Step


@dataclass(frozen=True, slots=True)
class Parcel:
    """An array that is not computed yet: the array as it was, and what is to be done with it."""

    base: np.ndarray
    steps: tuple[Step, ...]


def record(function: Callable[[Any], Any], item: Any) -> Any:
    """What the function returns, with parcels in place of what the plan moves."""
    return record_or_repeat(lambda: _packed(function(item)), function)


def _packed(value: Any) -> Any:
    if type(value) is Deferred:
        return Parcel(value._base, value._steps) if value._steps else value._base
    if type(value) in (tuple, list):
        return type(value)(map(_packed, value))
    if type(value) is dict:
        return {key: _packed(item) for key, item in value.items()}
    return value


def unpack(session: str, results: Sequence[Any]) -> list[Any]:
    """The results with every parcel computed, equal ones of the batch together."""
    parcels = [parcel for result in results for parcel in _parcels(result)]
    arrays = iter(_computed(session, parcels))
    return [_filled(result, arrays) for result in results]


def _parcels(value: Any) -> Iterator[Parcel]:
    if type(value) is Parcel:
        yield value
    elif type(value) in (tuple, list):
        for item in value:
            yield from _parcels(item)
    elif type(value) is dict:
        for item in value.values():
            yield from _parcels(item)


def _computed(session: str, parcels: Sequence[Parcel]) -> list[np.ndarray]:
    found: dict[int, np.ndarray] = {}
    for group in grouped([(parcel.base, parcel.steps) for parcel in parcels]):
        batch = np.ascontiguousarray(replay(session, group).cpu().numpy())
        found.update(zip(group.places, batch, strict=True))
    return [found[place] for place in range(len(parcels))]


def _filled(value: Any, arrays: Iterator[np.ndarray]) -> Any:
    if type(value) is Parcel:
        return next(arrays)
    if type(value) in (tuple, list):
        return type(value)(_filled(item, arrays) for item in value)
    if type(value) is dict:
        return {key: _filled(item, arrays) for key, item in value.items()}
    return value
