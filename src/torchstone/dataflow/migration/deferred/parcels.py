"""Recorded samples that travel between processes of another kind than DataLoader workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchstone.dataflow.migration.deferred.batch import grouped, replay
from torchstone.dataflow.migration.deferred.handle import Deferred
from torchstone.dataflow.migration.deferred.recording import record_or_repeat
from torchstone.dataflow.migration.nested import leaves, map_leaves
from torchstone.dataflow.migration.steps import Step


@dataclass(frozen=True, slots=True)
class Parcel:
    """An array that is not computed yet: the array as it was, and what is to be done with it."""

    base: np.ndarray
    steps: tuple[Step, ...]


def record(function: Callable[[Any], Any], item: Any) -> Any:
    """What the function returns, with parcels in place of what the plan moves."""
    return record_or_repeat(lambda: map_leaves(_packed, function(item)), function)


def _packed(value: Any) -> Any:
    if type(value) is not Deferred:
        return value
    return Parcel(value._base, value._steps) if value._steps else value._base


def unpack(session: str, results: Sequence[Any]) -> list[Any]:
    """The results with every parcel computed, equal ones of the batch together."""
    parcels = [item for item in leaves(list(results)) if type(item) is Parcel]
    arrays = iter(_computed(session, parcels))
    return [
        map_leaves(lambda item: next(arrays) if type(item) is Parcel else item, result)
        for result in results
    ]


def _computed(session: str, parcels: Sequence[Parcel]) -> list[np.ndarray]:
    found: dict[int, np.ndarray] = {}
    for group in grouped([(parcel.base, parcel.steps) for parcel in parcels]):
        batch = np.ascontiguousarray(replay(session, group).cpu().numpy())
        found.update(zip(group.places, batch, strict=True))
    return [found[place] for place in range(len(parcels))]
