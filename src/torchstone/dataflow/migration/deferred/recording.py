"""Samples while they are recorded, and what is done when a handle stopped one."""

from __future__ import annotations

import contextlib
import functools
import logging
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchstone.dataflow.comparison import differences, outcome_of
from torchstone.dataflow.migration.deferred.tensor_handle import is_uncomputed, real
from torchstone.dataflow.migration.nested import leaves

logger = logging.getLogger("migration")

ACTIVE = threading.local()
"""Of this thread: `fetching`, whether calls are recorded; `made`, whether any was; `is_off`, for whom
nothing is recorded any more."""


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """Calls that the plan moves are recorded inside, in this thread."""
    before = getattr(ACTIVE, "fetching", False)
    ACTIVE.fetching = True
    try:
        yield
    finally:
        ACTIVE.fetching = before


def is_off(recorder: Any) -> bool:
    return getattr(ACTIVE, "is_off", None) is recorder


def stop_recording(recorder: Any, error: Exception) -> None:
    """In this process: a handle met code that takes only real arrays."""
    ACTIVE.is_off = recorder
    logger.warning(
        "Migration failed: %s. Falling back to CPU. (samples are no longer recorded)", error
    )


def record_or_repeat(make: Callable[[], Any], recorder: Any) -> Any:
    """What `make` gives while calls are recorded. A handle that met code which takes only real
    arrays may have made it raise: then it is done again from the same random state with the
    original functions, and nothing more is recorded in this process."""
    if is_off(recorder):
        return make()
    state = RandomState.now()
    ACTIVE.made = False
    try:
        with recording():
            return make()
    except Exception as error:
        if not ACTIVE.made:
            raise
        stop_recording(recorder, error)
        state.restore()
        return make()


@dataclass(frozen=True, slots=True)
class RandomState:
    """The generators that a sample draws from."""

    python: Any
    numpy: Any
    torch: torch.Tensor

    @classmethod
    def now(cls) -> RandomState:
        return cls(random.getstate(), np.random.get_state(), torch.get_rng_state())

    def restore(self) -> None:
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(self.torch)


def recording_stream(original: Callable[..., None], recorder: Any) -> Callable[..., None]:
    """For the constructor of what fetches from an iterable dataset."""

    @functools.wraps(original)
    def make(self: Any, dataset: Any, *rest: Any) -> None:
        stream = Stream(dataset, recorder)
        original(self, stream, *rest)
        self.dataset = dataset
        self.collate_fn = _collate_or_repeat(self.collate_fn, recorder)

    return make


class Stream:
    """An iterable dataset whose items are recorded. A generator that raised cannot be asked again:
    the stream is begun again from the same random state and read up to where it was. One that is its
    own iterator cannot be begun again and is not recorded."""

    def __init__(self, dataset: Any, recorder: Any) -> None:
        self._dataset = dataset
        self._recorder = recorder
        self._state = RandomState.now()
        self._items = iter(dataset)
        self._given = 0
        self._last: Any = None

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Any:
        if self._items is self._dataset or is_off(self._recorder):
            return next(self._items)
        ACTIVE.made = False
        try:
            with recording():
                item = next(self._items)
        except StopIteration:
            raise
        except Exception as error:
            if not ACTIVE.made:
                raise
            stop_recording(self._recorder, error)
            self._begin_again(error)
            return next(self._items)
        self._given += 1
        self._last = item
        return item

    def _begin_again(self, error: Exception) -> None:
        last = outcome_of({"item": real(self._last)})
        self._state.restore()
        self._items = iter(self._dataset)
        again: Any = None
        for _ in range(self._given):
            again = next(self._items, None)
        if differences(last, outcome_of({"item": again})):
            error.add_note(
                "torchstone: an image that was to be computed later met code that takes only real arrays, "
                "and this dataset does not give the same items twice: PipelineMigrator.from_plan(…, defer=False)"
            )
            raise error


def _collate_or_repeat(collate: Callable[[Any], Any], recorder: Any) -> Callable[[Any], Any]:
    @functools.wraps(collate)
    def collated(items: Any) -> Any:
        if is_off(recorder) or not any(map(is_uncomputed, leaves(items))):
            return collate(items)
        state = RandomState.now()
        try:
            with recording():
                return collate(items)
        except Exception as error:
            stop_recording(recorder, error)
            state.restore()
            return collate(real(items))

    return collated
