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

from torchstone.core.text import Text
from torchstone.dataflow.comparison import differences, outcome_of
from torchstone.dataflow.migration.deferred.tensor_handle import is_uncomputed, real
from torchstone.dataflow.migration.ledger import Ledger
from torchstone.dataflow.migration.nested import leaves
from torchstone.dataflow.migration.refusals import first_line
from torchstone.dataflow.migration.steps import Fate

logger = logging.getLogger("migration")

ACTIVE = threading.local()
"""Of this thread: `fetching`, whether calls are recorded; `made`, those of the sample at hand; `is_off`,
for whom nothing is recorded any more."""


@dataclass(frozen=True, slots=True)
class Made:
    """A recorded call, and where it is counted."""

    ledger: Ledger
    function: str
    fate: Fate


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """Calls that the plan moves are recorded inside, in this thread."""
    before = getattr(ACTIVE, "fetching", False)
    ACTIVE.fetching = True
    try:
        yield
    finally:
        ACTIVE.fetching = before


_NOTHING = Text("", "")
_COMPUTE_AT_ONCE = Text(
    "let calls be computed at once: PipelineMigrator.from_plan(…, defer=False)",
    "请让调用立即计算：PipelineMigrator.from_plan(…, defer=False)",
)
_OTHER_ITEMS = Text(
    "; this stream gives other items when it is begun again: the rest comes from another pass through it",
    "；该数据流重新开始后给出的样本不同：其余样本来自另一遍遍历",
)


def is_off(recorder: Any) -> bool:
    return getattr(ACTIVE, "is_off", None) is recorder


def stop_recording(recorder: Any, error: Exception, more: Text = _NOTHING) -> None:
    """In this process: a handle met code that takes only real arrays. Calls of the sample at hand that
    nobody has computed fall back."""
    ACTIVE.is_off = recorder
    said = first_line(error)
    reason = Text(
        f"its result met code that takes only real arrays ({said.en}){more.en}",
        f"其结果遇到了只接受真实数组的代码（{said.zh}）{more.zh}",
    )
    logger.warning(
        "Migration failed: %s. Falling back to CPU: nothing more is recorded.", reason.en
    )
    for made in ACTIVE.made:
        if made.fate.settle():
            made.ledger.fall_back(made.function, reason, _COMPUTE_AT_ONCE, made.fate.line, 0.0)


def record_or_repeat(make: Callable[[], Any], recorder: Any) -> Any:
    """What `make` gives while calls are recorded. A handle that met code which takes only real
    arrays may have made it raise: then it is done again from the same random state with the
    original functions, and nothing more is recorded in this process."""
    if is_off(recorder):
        return make()
    state = RandomState.now()
    ACTIVE.made = []
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
    the stream is begun again from the same random state and read up to where it was. What it gives from
    there on is not what it would have given if it gives other items the second time, which is reported.
    One that is its own iterator cannot be begun again and is not recorded."""

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
        ACTIVE.made = []
        try:
            with recording():
                item = next(self._items)
        except StopIteration:
            raise
        except Exception as error:
            if not ACTIVE.made:
                raise
            made = ACTIVE.made  # the items that are read again are no part of it
            more = _NOTHING if self._begin_again() else _OTHER_ITEMS
            ACTIVE.made = made
            stop_recording(self._recorder, error, more)
            return next(self._items)
        self._given += 1
        self._last = item
        return item

    def _begin_again(self) -> bool:
        """Read up to where the stream was; whether the last item came again."""
        last = outcome_of({"item": real(self._last)})
        self._state.restore()
        self._items = iter(self._dataset)
        again: Any = None
        for _ in range(self._given):
            again = next(self._items, None)
        return not differences(last, outcome_of({"item": again}))


def _collate_or_repeat(collate: Callable[[Any], Any], recorder: Any) -> Callable[[Any], Any]:
    @functools.wraps(collate)
    def collated(items: Any) -> Any:
        if is_off(recorder) or not any(map(is_uncomputed, leaves(items))):
            return collate(items)
        state = RandomState.now()
        ACTIVE.made = []
        try:
            with recording():
                return collate(items)
        except Exception as error:
            stop_recording(recorder, error)
            state.restore()
            return collate(real(items))

    return collated
