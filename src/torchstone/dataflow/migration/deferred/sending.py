"""How handles go from a worker to its DataLoader. Only there do they travel as handles: in a file,
a cache or a queue of the program they are what they stand for."""

from __future__ import annotations

import pickle
from dataclasses import replace
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch

from torchstone.dataflow.migration.deferred.batch import (
    arrived,
    arrived_batch,
    arrived_tensor,
    grouped,
)
from torchstone.dataflow.migration.deferred.handle import Deferred
from torchstone.dataflow.migration.deferred.tensor_handle import (
    DeferredBatch,
    DeferredTensor,
    UncomputedTensor,
    recorded_array,
)


class Sent:
    """What a worker fetched. It arrives as the data."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __reduce__(self) -> Any:
        return pickle.loads, (bytes(_HandlePickler.dumps(self.data)),)


class _HandlePickler(ForkingPickler):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        kinds = dict.fromkeys((Deferred, DeferredTensor, DeferredBatch), reduced)
        self.dispatch_table = {**self.dispatch_table, **kinds}


def reduced(value: Deferred | UncomputedTensor) -> Any:
    """The function that makes what a handle stands for where it arrives, and its arguments."""
    if isinstance(value, DeferredBatch) and value._computed is None:
        groups = [
            replace(group, bases=tuple(map(torch.from_numpy, group.bases)))
            for group in grouped([(item._base, item._steps) for item in value.items])
        ]
        return arrived_batch, (value.items[0]._session, groups, len(value.items))
    if isinstance(value, UncomputedTensor):
        if (array := recorded_array(value)) is None:
            return _itself, (value.torchstone_materialise(),)
        return arrived_tensor, (array._session, array._base, array._steps)
    if not value._steps:
        return _itself, (value._base,)
    return arrived, (value._session, value._base, value._steps)


def _itself(value: Any) -> Any:
    return value
