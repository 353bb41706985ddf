"""Handles of one batch, and what becomes of them where they arrive."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import default_collate

from torchstone.core.text import Text
from torchstone.dataflow.migration.catalogue import catalogue
from torchstone.dataflow.migration.deferred.handle import materialised
from torchstone.dataflow.migration.deferred.tensor_handle import real, recorded_array, stack
from torchstone.dataflow.migration.ledger import Figure, Ledger
from torchstone.dataflow.migration.proof.comparison import difference
from torchstone.dataflow.migration.specification import Case, Refusal
from torchstone.dataflow.migration.steps import Fate, Step
from torchstone.dataflow.migration.targets import Target
from torchstone.dataflow.migration.wrapper import Migration, UniversalWrapper

logger = logging.getLogger("migration")


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


def collate(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:  # noqa: ARG001
    """What `default_collate` does with arrays."""
    made = stack(batch)
    return default_collate([torch.as_tensor(materialised(item)) for item in batch]) if made is None else made  # fmt: skip


def collate_tensors(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:  # noqa: ARG001
    """What `default_collate` does with tensors."""
    made = stack([recorded_array(item) for item in batch])
    return default_collate(real(list(batch))) if made is None else made


@dataclass(frozen=True, slots=True)
class Group:
    """Items of one shape with the same steps."""

    places: tuple[int, ...]
    """In the batch."""
    bases: tuple[Any, ...]
    steps: tuple[Step, ...]
    fates: tuple[tuple[Fate, ...], ...]
    """For every item what becomes of its calls."""


def grouped(items: Sequence[tuple[np.ndarray, tuple[Step, ...]]]) -> list[Group]:
    """Bases and steps that can be computed together."""
    groups: dict[Any, list[int]] = {}
    for place, (base, steps) in enumerate(items):
        key = (base.shape, base.dtype.str, tuple((one.kind, one.name, one.key) for one in steps))
        groups.setdefault(key, []).append(place)
    return [
        Group(
            tuple(places),
            tuple(items[place][0] for place in places),
            items[places[0]][1],
            tuple(fates_of(items[place][1]) for place in places),
        )
        for places in groups.values()
    ]


def fates_of(steps: tuple[Step, ...]) -> tuple[Fate, ...]:
    return tuple(step.recorded.fate for step in steps if step.recorded is not None)


def arrived(
    session: str, base: np.ndarray, steps: tuple[Step, ...], figure: Figure = "deferred"
) -> np.ndarray:
    """One handle outside of a batch, as the array."""
    (group,) = grouped([(np.asarray(base), steps)])
    return np.ascontiguousarray(replay(session, group, figure)[0].cpu().numpy())


def arrived_tensor(session: str, base: np.ndarray, steps: tuple[Step, ...]) -> Tensor:
    """One tensor outside of a batch."""
    return torch.from_numpy(arrived(session, base, steps))


def arrived_batch(session: str, groups: list[Group], count: int) -> Tensor:
    plain = [replace(group, bases=tuple(map(np.asarray, group.bases))) for group in groups]
    return _joined(session, plain, count)


def _joined(session: str, groups: list[Group], count: int) -> Tensor:
    """The results of all groups in the order of the batch."""
    parts = [(group.places, replay(session, group)) for group in groups]
    if len(parts) == 1:
        return parts[0][1].contiguous()
    first = parts[0][1]
    whole = torch.empty((count, *first.shape[1:]), dtype=first.dtype, device=first.device)
    for places, part in parts:
        whole[list(places)] = part.to(first.device)
    return whole


def replay(name: str, group: Group, figure: Figure = "deferred") -> Tensor:
    """On the device, or with the original functions if that is not proven or fails. The calls are
    counted under `figure` where they moved."""
    session = _SESSIONS[name]
    bases, steps = group.bases, group.steps
    try:
        refused = _not_certified(session, bases[0], steps)
        if refused is None:
            start = time.perf_counter()
            result = _on_device(session, bases, steps)
            seconds = time.perf_counter() - start
            if wrong := _difference(session, bases, steps, result):
                refused = Text(f"quarantined: {wrong}", f"已隔离：{wrong}")
    except Exception as error:  # out of memory, an operator that the device lacks
        text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        logger.warning("Migration failed: %s. Falling back to CPU.", text)
        refused = Text(text, text)
    if refused is not None:
        for fates in group.fates:
            note_fallback(session.migration.ledger, steps, fates, refused, _LEAVE)
        return _by_originals(session, bases, steps)
    _count(session, group, figure, result, seconds)
    return result


_LEAVE = Text("leave the call on the CPU", "请将该调用保留在 CPU 上")


def note_fallback(
    ledger: Ledger, steps: tuple[Step, ...], fates: tuple[Fate, ...], reason: Text, edit: Text
) -> None:
    """The calls of one item were computed by the originals."""
    calls = [step.name for step in steps if step.recorded is not None]
    for name, fate in zip(calls, fates, strict=True):
        if fate.settle():
            ledger.fall_back(name, reason, edit, fate.line, 0.0)


def _on_device(session: Session, bases: tuple[np.ndarray, ...], steps: tuple[Step, ...]) -> Tensor:
    with torch.no_grad():
        batch = torch.from_numpy(np.stack(bases)).to(session.target.device)
        kind = tuple((step.kind, step.name, step.key) for step in steps)
        name = ", ".join(step.name or step.kind for step in steps)
        result = session.migration.fuser.run(lambda part: _stepped(part, steps), batch, kind, name)
    return result if session.keep else result.cpu()


def _stepped(batch: Tensor, steps: tuple[Step, ...]) -> Tensor:
    for step in steps:
        batch = step.of_batch(batch)
    return batch


def _by_originals(
    session: Session, bases: tuple[np.ndarray, ...], steps: tuple[Step, ...]
) -> Tensor:
    items = [item_by_originals(session.original, base, steps) for base in bases]
    return torch.from_numpy(np.stack(items))


def item_by_originals(
    originals: Callable[[str], Callable[..., Any]], base: np.ndarray, steps: tuple[Step, ...]
) -> np.ndarray:
    value = base
    for step in steps:
        value = step.of_item(value, originals)
    return value


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


def _difference(
    session: Session, bases: tuple[np.ndarray, ...], steps: tuple[Step, ...], result: Tensor
) -> str:
    """One item of some batches is computed on both sides; what differs, or nothing."""
    cases = [(name, case) for name, case in _cases(bases[0], steps) if isinstance(case, Case)]
    sampler = session.migration.sampler
    wanted = [sampler.wants(name, case) for name, case in cases]
    if not any(wanted):
        return ""
    expected = np.ascontiguousarray(item_by_originals(session.original, bases[0], steps))
    bound = Case(
        "batch", sum(case.tolerance for _, case in cases), sum(case.relative for _, case in cases)
    )
    got = np.ascontiguousarray(result[0].cpu().numpy())
    wrong = difference(expected, got, bound)
    for name, case in cases:
        if wrong:
            sampler.quarantine(name, case, wrong)
        else:
            session.migration.ledger.add(name, "verified")
    if wrong:
        logger.warning(
            "a deferred batch gave another result than the original (%s): quarantined", wrong
        )
    return wrong


def _count(session: Session, group: Group, figure: Figure, result: Tensor, seconds: float) -> None:
    ledger = session.migration.ledger
    calls = [step.name for step in group.steps if step.recorded is not None]
    for fates in group.fates:
        for name, fate in zip(calls, fates, strict=True):
            if fate.settle():
                ledger.add(name, figure)
    if session.target.device.type == "cpu" or not calls:
        return
    ledger.add(calls[0], "bytes_to_device", sum(base.nbytes for base in group.bases))
    ledger.add(calls[0], "migrated_seconds", seconds)
    if not session.keep:
        ledger.add(calls[-1], "bytes_to_host", result.numel() * result.element_size())
