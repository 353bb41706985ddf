"""DataLoaders yield one full batch, then the remainder batch when they can really yield one."""

from __future__ import annotations

import contextlib
import dis
import linecache
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
)

from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import BatchUsed, Session
from torchstone.dryrun.shapes.history import LOADER, remember
from torchstone.observe.where import PROGRAM

FULL, REMAINDER = "full batch", "remainder batch"
MOST_ACCUMULATED = 64
"""Micro-batches of one step that are given: programs that accumulate more are rare, and each costs a forward."""
ITERABLE_BATCHES = 2
"""Batches taken of a dataset without length: one to see it, one to see the loop come round."""


def shorten_loaders(session: Session) -> None:
    """From now on iterating a DataLoader gives two batches at most, in this process."""

    real_length = DataLoader.__len__

    def iterate(loader: DataLoader[Any]) -> Iterator[Any]:
        dataset = loader.dataset  # taken now, as torch does: a loader may show another one later
        return _Batches(loader, lambda: _batches(session, loader, dataset), real_length)

    def length(loader: DataLoader[Any]) -> int:
        """Libraries plan their epochs by it (an evaluation after the last batch): they are told how many batches
        will come. The program itself gets the true number, which it divides and schedules by."""
        if isinstance(loader.dataset, IterableDataset) or not PROGRAM.library(2):
            return real_length(loader)
        return len(batch_plan(loader, session.settings.batch_size))

    put(DataLoader, "__iter__", iterate)
    put(DataLoader, "__len__", length)


class _Batches:
    """Ends after the batches of the plan in a `for`; `next(...)` is given more, as the true loader would."""

    def __init__(
        self,
        loader: DataLoader[Any],
        start: Callable[[], Iterator[Any]],
        real_length: Callable[[DataLoader[Any]], int],
    ) -> None:
        self._loader, self._start, self._real_length = loader, start, real_length
        self._batches = start()
        self._given = 0

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Any:
        batch = next(self._batches, _NO_MORE)
        if batch is _NO_MORE and self._given and self._is_owed_more(sys._getframe(1)):
            self._batches = self._start()
            batch = next(self._batches, _NO_MORE)
        if batch is _NO_MORE:
            raise StopIteration
        self._given += 1
        return batch

    def _is_owed_more(self, frame: FrameType) -> bool:
        """Does the caller count batches by itself, and has not had all of them? `for` and `list` do not."""
        code = frame.f_code
        if not PROGRAM.is_own(code.co_filename) or code.co_code[frame.f_lasti] in _LOOPS:
            return False
        if "next(" not in linecache.getline(code.co_filename, frame.f_lineno or 0):
            return False
        with contextlib.suppress(TypeError):
            return self._given < self._real_length(self._loader)
        return False


_NO_MORE = object()
_LOOPS = frozenset(dis.opmap[name] for name in ("FOR_ITER",) if name in dis.opmap)


def _batches(session: Session, loader: DataLoader[Any], dataset: Any) -> Iterator[Any]:
    if isinstance(dataset, IterableDataset):
        yield from _iterable_batches(session, loader)
        return
    plan = batch_plan(loader, session.settings.batch_size)
    more = min((_length(loader.batch_sampler or loader.sampler) or 1) - 1, MOST_ACCUMULATED)
    for label, indices in _until_a_step(session, plan, more):
        items = [dataset[index] for index in indices]
        batch = (
            loader.collate_fn(items)
            if loader.batch_size is not None or (loader.batch_sampler is not None)
            else loader.collate_fn(items[0])
        )
        _count(session, label, len(indices))
        spot, before = (
            PROGRAM.here(2),
            (session.counts.backwards, session.counts.evaluation_forwards),
        )
        yield _marked(batch, f"{LOADER}{label}, {len(indices)})")
        session.report(BatchUsed(dataset, spot, *before))
    session.end_batches()


def _until_a_step(
    session: Session, plan: list[tuple[str, list[int]]], more: int
) -> Iterator[tuple[str, list[int]]]:
    """The plan; its full batch again, `more` times at most, while gradients are accumulated and no step has been
    made of them."""
    counts = session.counts
    for label, indices in plan:
        backwards, steps = counts.backwards, counts.optimizer_steps
        yield label, indices
        for _ in range(more if label == FULL else 0):
            if counts.backwards == backwards or counts.optimizer_steps > steps:
                break
            yield label, indices


def _iterable_batches(session: Session, loader: DataLoader[Any]) -> Iterator[Any]:
    source = iter(loader.dataset)
    size = session.settings.batch_size or loader.batch_size
    for _ in range(ITERABLE_BATCHES):
        items = [item for item, _ in zip(source, range(size or 1), strict=False)]
        if not items or (loader.drop_last and len(items) < (size or 1)):
            break
        batch = loader.collate_fn(items if size is not None else items[0])
        _count(session, FULL if len(items) == size else REMAINDER, len(items))
        yield _marked(batch, f"{LOADER}{len(items)})")
    session.end_batches()


def batch_plan(loader: DataLoader[Any], other_size: int = 0) -> list[tuple[str, list[int]]]:
    """The indices of one full batch and, when the loader yields one, of the remainder batch."""
    if loader.batch_sampler is None:
        first = _first_indices(loader.sampler, 1)
        return [(FULL, first)] if first else []
    sampler = loader.batch_sampler
    if type(sampler) is not BatchSampler:
        return _own_batches(sampler)
    size = other_size or sampler.batch_size
    total = _length(sampler.sampler)
    if total is None:
        return [(FULL, _first_indices(sampler.sampler, size))]
    plan = [(FULL, _first_indices(sampler.sampler, size))] if total >= size else []
    rest = total % size
    if rest and not sampler.drop_last:
        plan.append((REMAINDER, _last_indices(sampler.sampler, rest, total)))
    return plan


def _own_batches(sampler: Any) -> list[tuple[str, list[int]]]:
    """A batch sampler of the user's own: its first two batches as it gives them."""
    found = [list(batch) for batch, _ in zip(sampler, range(2), strict=False)]
    return [(FULL, batch) for batch in found]


def _length(sampler: Any) -> int | None:
    with contextlib.suppress(TypeError, NotImplementedError):
        return len(sampler)
    return None


def _first_indices(sampler: Any, count: int) -> list[Any]:
    """Without walking the sampler: a permutation of a million indices is not needed."""
    if isinstance(sampler, (SequentialSampler, RandomSampler)):
        return list(range(min(count, len(sampler))))
    return [index for index, _ in zip(iter(sampler), range(count), strict=False)]


def _last_indices(sampler: Any, count: int, total: int) -> list[Any]:
    if isinstance(sampler, (SequentialSampler, RandomSampler)):
        limit = len(sampler.data_source)
        return [index % limit for index in range(total - count, total)]
    return list(sampler)[-count:]


def _count(session: Session, label: str, size: int) -> None:
    session.counts.add("full_batches" if label == FULL else "remainder_batches")
    session.begin_batch(f"{label} of {size}")


def _marked(batch: Any, origin: str) -> Any:
    """The tensors of a batch know that they come from a loader."""
    spot = PROGRAM.here(3)

    def mark(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            remember(value, origin, spot, None)
        elif isinstance(value, dict):
            for item in value.values():
                mark(item)
        elif isinstance(value, (tuple, list)):
            for item in value:
                mark(item)

    mark(batch)
    return batch
