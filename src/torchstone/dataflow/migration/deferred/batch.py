"""Handles of one batch, and what becomes of them where they arrive."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import default_collate

from torchstone.core.text import Text
from torchstone.dataflow.migration.catalogue import catalogue
from torchstone.dataflow.migration.deferred.handle import Deferred, materialised
from torchstone.dataflow.migration.deferred.steps import Step
from torchstone.dataflow.migration.deferred.tensor_handle import (
    UncomputedTensor,
    equal_in_kind,
    real,
    recorded_array,
)
from torchstone.dataflow.migration.moves.numpy._elementwise import torch_dtype
from torchstone.dataflow.migration.proof.comparison import difference
from torchstone.dataflow.migration.specification import Case, Refusal
from torchstone.dataflow.migration.targets import Target
from torchstone.dataflow.migration.wrapper import Migration, UniversalWrapper

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Session:
    """What the main process needs to compute what workers recorded."""

    migration: Migration
    target: Target
    wrappers: Mapping[str, UniversalWrapper]
    keep: bool

    def original(self, name: str) -> Callable[..., Any]:
        return self.wrappers[name].original_func


_SESSIONS: dict[str, Session] = {}
"""Kept after a restore: workers that live on still send handles."""


def open_session(name: str, session: Session) -> None:
    _SESSIONS[name] = session


class DeferredBatch(UncomputedTensor):
    """The handles of a batch, stacked, as they were then."""

    items: tuple[Deferred, ...]

    def _compute(self) -> Tensor:
        return torch.stack([torch.from_numpy(item.torchstone_materialise()) for item in self.items])

    def settle(self) -> Tensor:
        if self._computed is not None:
            return self._computed
        return _joined(self.items[0]._session, grouped(self.items), len(self.items))


def stack(items: Sequence[Deferred | None]) -> DeferredBatch | None:
    """What `torch.stack` of the arrays is; None if they have to be computed for it."""
    if not equal_in_kind(items):
        return None
    held = tuple(item.snapshot() for item in items if item is not None)
    shape, kind = held[0].shape, torch_dtype(held[0].dtype)
    made = DeferredBatch.of_shape((len(held), *shape), kind)
    made.items = held
    return made


def collate(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:  # noqa: ARG001
    """What `default_collate` does with arrays."""
    made = stack(batch)
    return default_collate([torch.as_tensor(materialised(item)) for item in batch]) if made is None else made  # fmt: skip


def collate_tensors(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:  # noqa: ARG001
    """What `default_collate` does with tensors."""
    made = stack([recorded_array(item) for item in batch])
    return default_collate(real(list(batch))) if made is None else made


Group = tuple[tuple[int, ...], tuple[Any, ...], tuple[Step, ...]]


def _grouped_members(items: Sequence[Deferred]) -> list[tuple[tuple[int, ...], list[Deferred]]]:
    """Items of one shape with the same steps, with their places in the batch."""
    groups: dict[Any, tuple[list[int], list[Deferred]]] = {}
    for place, item in enumerate(items):
        steps = tuple((one.kind, one.name, one.key) for one in item._steps)
        key = (item._base.shape, item._base.dtype.str, steps)
        places, members = groups.setdefault(key, ([], []))
        places.append(place)
        members.append(item)
    return [(tuple(places), members) for places, members in groups.values()]


def grouped(items: Sequence[Deferred]) -> list[Group]:
    return [
        (places, tuple(item._base for item in members), members[0]._steps)
        for places, members in _grouped_members(items)
    ]


def arrived(session: str, base: np.ndarray, steps: tuple[Step, ...]) -> np.ndarray:
    """One handle outside of a batch, as the array."""
    return np.ascontiguousarray(replay(session, (base,), steps)[0].cpu().numpy())


def arrived_tensor(session: str, base: np.ndarray, steps: tuple[Step, ...]) -> Tensor:
    """One tensor outside of a batch."""
    return torch.from_numpy(arrived(session, base, steps))


def arrived_batch(session: str, groups: list[Group], count: int) -> Tensor:
    plain = [
        (places, tuple(np.asarray(base) for base in bases), steps)
        for places, bases, steps in groups
    ]
    return _joined(session, plain, count)


def _joined(session: str, groups: list[Group], count: int) -> Tensor:
    """The results of all groups in the order of the batch."""
    parts = [(places, replay(session, bases, steps)) for places, bases, steps in groups]
    if len(parts) == 1:
        return parts[0][1].contiguous()
    first = parts[0][1]
    whole = torch.empty((count, *first.shape[1:]), dtype=first.dtype, device=first.device)
    for places, part in parts:
        whole[list(places)] = part.to(first.device)
    return whole


def replay(name: str, bases: tuple[np.ndarray, ...], steps: tuple[Step, ...]) -> Tensor:
    """On the device, or with the original functions if that is not proven or fails."""
    session = _SESSIONS[name]
    try:
        if refused := _not_certified(session, bases[0], steps):
            _note(session, steps, refused)
            return _by_originals(session, bases, steps)
        start = time.perf_counter()
        result = _on_device(session, bases, steps)
        _count(session, bases, steps, result, time.perf_counter() - start)
    except Exception as error:  # out of memory, an operator that the device lacks
        logger.warning("Migration failed: %s. Falling back to CPU.", error)
        text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        _note(session, steps, Text(text, text))
        return _by_originals(session, bases, steps)
    return _verified(session, bases, steps, result)


def _on_device(session: Session, bases: tuple[np.ndarray, ...], steps: tuple[Step, ...]) -> Tensor:
    with torch.no_grad():
        batch = torch.from_numpy(np.stack(bases)).to(session.target.device)
        for step in steps:
            batch = step.of_batch(batch)
    return batch if session.keep else batch.cpu()


def _by_originals(
    session: Session, bases: tuple[np.ndarray, ...], steps: tuple[Step, ...]
) -> Tensor:
    return torch.from_numpy(np.stack([_item_by_originals(session, base, steps) for base in bases]))


def _item_by_originals(session: Session, base: np.ndarray, steps: tuple[Step, ...]) -> np.ndarray:
    value = base
    for step in steps:
        value = step.of_item(value, session.original)
    return np.ascontiguousarray(value)


def _cases(base: np.ndarray, steps: tuple[Step, ...]) -> list[tuple[str, Case | Refusal]]:
    """The case of every call among the steps."""
    shape, dtype = base.shape, base.dtype
    found = []
    for step in steps:
        if step.kind == "call":
            spec = catalogue()[step.name]
            like = np.broadcast_to(np.zeros((), dtype), shape)
            found.append((step.name, spec.judge({**step.arguments, spec.data[0]: like})))
        shape, dtype = step.shape_and_dtype(shape, dtype)
    return found


def _not_certified(session: Session, base: np.ndarray, steps: tuple[Step, ...]) -> Text | None:
    for name, case in _cases(base, steps):
        verdict = (
            case
            if isinstance(case, Refusal)
            else session.wrappers[name].certified(case, session.target)
        )
        if isinstance(verdict, Refusal):
            return verdict.reason
    return None


def _verified(
    session: Session, bases: tuple[np.ndarray, ...], steps: tuple[Step, ...], result: Tensor
) -> Tensor:
    """One item of some batches is computed on both sides."""
    cases = [(name, case) for name, case in _cases(bases[0], steps) if isinstance(case, Case)]
    sampler = session.migration.sampler
    wanted = [sampler.wants(name, case) for name, case in cases]
    if not any(wanted):
        return result
    expected = _item_by_originals(session, bases[0], steps)
    bound = Case(
        "batch", sum(case.tolerance for _, case in cases), sum(case.relative for _, case in cases)
    )
    got = np.ascontiguousarray(result[0].cpu().numpy())
    if not (wrong := difference(expected, got, bound)):
        for name, _ in cases:
            session.migration.ledger.of(name).verified += 1
        return result
    for name, case in cases:
        sampler.quarantine(name, case, wrong)
    logger.warning(
        "a deferred batch gave another result than the original (%s): quarantined", wrong
    )
    return _by_originals(session, bases, steps)


def _count(
    session: Session,
    bases: tuple[np.ndarray, ...],
    steps: tuple[Step, ...],
    result: Tensor,
    seconds: float,
) -> None:
    calls = [step.name for step in steps if step.kind == "call"]
    on_device = session.target.device.type != "cpu"
    for index, name in enumerate(calls):
        count = session.migration.ledger.of(name)
        count.deferred += len(bases)
        if index == 0 and on_device:
            count.bytes_to_device += sum(base.nbytes for base in bases)
            count.migrated_seconds += seconds
        if index == len(calls) - 1 and on_device and not session.keep:
            count.bytes_to_host += result.numel() * result.element_size()


def _note(session: Session, steps: tuple[Step, ...], reason: Text) -> None:
    edit = Text("leave the call on the CPU", "请将该调用保留在 CPU 上")
    for step in steps:
        if step.kind == "call":
            session.migration.ledger.fall_back(step.name, reason, edit, "DataLoader", 0.0)
