"""Rows that a program trains on and evaluates on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch.utils.data import Subset, TensorDataset

from torchstone.core.place import Place
from torchstone.core.text import Text
from torchstone.dryrun.record import Hazard
from torchstone.dryrun.session import BatchUsed, Session
from torchstone.observe.training import TRAINING, OptimizerMade

_MOST_ROWS = 5_000_000
"""More are not compared: a set of them would be larger than the program."""


@dataclass(frozen=True)
class _Rows:
    """The rows of a loader's dataset."""

    dataset: Any
    base: Any
    """The dataset, or the memory, that they are rows of."""
    rows: range | frozenset[int]
    place: Place

    def shared_with(self, other: _Rows) -> int:
        """How many rows are in both; none for the very same dataset, which is evaluated on purpose."""
        if self.base != other.base or self.dataset is other.dataset or self.rows == other.rows:
            return 0
        if isinstance(self.rows, range) and isinstance(other.rows, range):
            both = range(
                max(self.rows.start, other.rows.start), min(self.rows.stop, other.rows.stop)
            )
            return len(both)
        return len(set(self.rows) & set(other.rows))


@dataclass
class DataRows:
    """Which rows were used for what."""

    session: Session
    trained: dict[int, _Rows] = field(default_factory=dict)
    evaluated: dict[int, _Rows] = field(default_factory=dict)
    found: dict[Hazard, None] = field(default_factory=dict)

    def start(self) -> None:
        TRAINING.subscribe(self._begin_anew, OptimizerMade)
        self.session.subscribe(BatchUsed, self.used)

    def _begin_anew(self, _: OptimizerMade) -> None:
        """Another training: the folds of a cross-validation share their rows on purpose."""
        self.hazards()
        self.trained.clear()
        self.evaluated.clear()

    def used(self, event: BatchUsed) -> None:
        """What happened since the batch was given?"""
        counts = self.session.counts
        if counts.backwards > event.backwards:
            self._put(self.trained, event.dataset, event.place)
        elif counts.evaluation_forwards > event.evaluation_forwards:
            self._put(self.evaluated, event.dataset, event.place)

    def _put(self, into: dict[int, _Rows], dataset: Any, place: Place) -> None:
        if id(dataset) not in into and (rows := _rows_of(dataset, place)) is not None:
            into[id(dataset)] = rows

    def hazards(self) -> tuple[Hazard, ...]:
        """Rows in both."""
        for tested in self.evaluated.values():
            for trained in self.trained.values():
                shared = tested.shared_with(trained)
                if shared:
                    self.found[_leak(tested, trained, shared)] = None
        return tuple(self.found)


def _leak(tested: _Rows, trained: _Rows, shared: int) -> Hazard:
    total = len(tested.rows)
    return Hazard(
        "DR206",
        "DataLoader",
        tested.place,
        detail=Text(
            f"{shared:,} of {total:,} rows that are evaluated here are trained on at {trained.place}",
            f"此处评估的 {total:,} 行中有 {shared:,} 行也在 {trained.place} 处用于训练",
        ),
    )


def _rows_of(dataset: Any, place: Place) -> _Rows | None:
    """The rows of the innermost dataset; of tensors, their places in memory."""
    rows: Any = None
    base = dataset
    while isinstance(base, Subset):
        inner = list(base.indices)
        rows = inner if rows is None else [inner[row] for row in rows]
        base = base.dataset
    if rows is not None:
        return None if len(rows) > _MOST_ROWS else _Rows(dataset, id(base), frozenset(rows), place)
    if type(base) is not TensorDataset or not base.tensors:
        return None
    first = base.tensors[0]
    if first.dim() == 0 or not first.is_contiguous():
        return None
    try:
        memory = first.untyped_storage().data_ptr()
    except RuntimeError:  # a fake tensor has no memory
        return None
    width = max(first[0].numel(), 1) if len(first) else 1
    start, off = divmod(int(first.storage_offset()), width)
    if not memory or off:
        return None
    return _Rows(dataset, (memory, width), range(start, start + len(first)), place)
