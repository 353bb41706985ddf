"""DataLoaders yield one full batch, then the remainder batch when they can really yield one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
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
from torchstone.dryrun.script.session import Session
from torchstone.dryrun.shapes.history import remember
from torchstone.observe.where import PROGRAM

FULL, REMAINDER = "full batch", "remainder batch"
ITERABLE_BATCHES = 2
"""Batches taken of a dataset without length: one to see it, one to see the loop come round."""


def shorten_loaders(session: Session) -> None:
    """From now on iterating a DataLoader gives two batches at most, in this process."""

    def iterate(loader: DataLoader[Any]) -> Iterator[Any]:
        return _batches(session, loader)

    put(DataLoader, "__iter__", iterate)


def _batches(session: Session, loader: DataLoader[Any]) -> Iterator[Any]:
    if isinstance(loader.dataset, IterableDataset):
        yield from _iterable_batches(session, loader)
        return
    for label, indices in batch_plan(loader, session.settings.batch_size):
        items = [loader.dataset[index] for index in indices]
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
        yield _marked(batch, f"DataLoader ({label}, {len(indices)})")
        session.on_rows(loader.dataset, spot, *before)
    session.batch = ""


def _iterable_batches(session: Session, loader: DataLoader[Any]) -> Iterator[Any]:
    source = iter(loader.dataset)
    size = session.settings.batch_size or loader.batch_size
    for _ in range(ITERABLE_BATCHES):
        items = [item for item, _ in zip(source, range(size or 1), strict=False)]
        if not items or (loader.drop_last and len(items) < (size or 1)):
            break
        batch = loader.collate_fn(items if size is not None else items[0])
        _count(session, FULL if len(items) == size else REMAINDER, len(items))
        yield _marked(batch, f"DataLoader ({len(items)})")
    session.batch = ""


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
    if label == FULL:
        session.counts.full_batches += 1
    else:
        session.counts.remainder_batches += 1
    session.batch = f"{label} of {size}"


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
