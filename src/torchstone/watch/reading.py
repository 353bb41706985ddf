"""Readers: one row of counts for every gradient, read where the gradient lives."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchstone.watch.fused import LEVELS, ROW, STEP, Fused, Pinned, load_fused
from torchstone.watch.glance import address_of

WIDTH = 32
"""Values of each tensor that are sampled; a smaller tensor gives all of them."""
_QUARTERS = 4
KINDS = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_address: Callable[[Any], int] = Tensor.data_ptr
_dtype: Callable[[Any], torch.dtype] = Tensor.dtype.__get__  # type: ignore[attr-defined]
_is_contiguous: Callable[[Any], bool] = Tensor.is_contiguous
_numel: Callable[[Any], int] = Tensor.numel
_HIGH = 1 << 40
"""Addresses below it are looked at again: that of a view of memory that was given away is low."""


@dataclass(frozen=True, slots=True)
class Query:
    """What the counts are for: exponents (biased, fp32) to count below, and overflow limits."""

    levels: NDArray[np.uint8]
    limits: NDArray[np.float64]
    histogram: bool = False
    samples: bool = True
    pinned: tuple[Pinned, Pinned] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pinned", (Pinned(self.levels), Pinned(self.limits)))


@dataclass(slots=True)
class Reading:
    """What one read gave; rows of parameters without a gradient are all zero."""

    beat: int
    rows: NDArray[np.void]
    present: NDArray[np.bool_]
    counted: bool = True
    """False when only norms were read this time."""
    samples: NDArray[np.float32] | None = None
    histograms: NDArray[np.int64] | None = None
    squares: float | None = None
    """Sum over all values, NaN where one is not finite; None where only the rows say it."""

    @property
    def whole(self) -> float:
        """Sum of the squares of all values; NaN where one is not finite."""
        if self.squares is None:
            bad = (self.rows["nan"] + self.rows["infinite"]).any()
            self.squares = math.nan if bad else float(self.rows["sum_of_squares"].sum())
        return self.squares

    @classmethod
    def empty(cls, beat: int) -> Reading:
        """Stands where nothing was read."""
        return cls(beat, np.zeros(0, ROW), np.zeros(0, np.bool_), False)


def torch_rows(gradients: Sequence[Tensor | None], query: Query) -> tuple[NDArray[np.void], NDArray[np.int64]]:  # fmt: skip
    """The same counts as the C pass, with torch alone: exact, and many times slower."""
    rows = np.zeros(len(gradients), ROW)
    histograms = np.zeros((len(gradients), 256), np.int64)
    for row, histogram, gradient, limit in zip(
        rows, histograms, gradients, query.limits, strict=True
    ):
        if gradient is not None and gradient.numel():
            wide = gradient.detach().to(torch.float32).flatten().abs()
            _fill(row, histogram, wide, query, float(limit))
    return rows, histograms


def _fill(row: np.void, histogram: NDArray[np.int64], wide: Tensor, query: Query, limit: float) -> None:  # fmt: skip
    finite = wide[wide.isfinite()].double()
    row["sum_of_squares"] = float(finite.square().sum())
    row["largest"] = float(finite.max()) if finite.numel() else 0.0
    row["nan"] = int(wide.isnan().sum())
    row["infinite"] = int(wide.isinf().sum())
    row["zero"] = int((wide == 0).sum())
    row["beyond"] = int((wide.double() >= limit).sum())
    counts = torch.bincount((wide.view(torch.int32) >> 23).long(), minlength=256).numpy()
    histogram[:] = counts
    row["below"] = [int(counts[: int(level)].sum()) for level in query.levels]


def torch_samples(tensors: Sequence[Tensor | None]) -> NDArray[np.float32]:
    """Evenly spread values of every tensor, chosen as the C pass chooses them."""
    out = torch.zeros(len(tensors), WIDTH)
    where = [i for i, item in enumerate(tensors) if item is not None and item.numel()]
    taken = [_spread(tensors[i]) for i in where]  # type: ignore[arg-type]
    if taken:
        flat = torch.cat([item.to(torch.float32) for item in taken]).cpu()
        for i, part in zip(where, flat.split([len(item) for item in taken]), strict=True):
            out[i, : len(part)] = part
    return out.numpy()


def _spread(tensor: Tensor) -> Tensor:
    flat = tensor.detach().flatten()
    count = min(WIDTH, len(flat))
    return flat[:: len(flat) // count][:count]


def numpy_step(
    sizes: NDArray[np.int64], before: NDArray[np.float32], after: NDArray[np.float32],
    gradients: NDArray[np.float32], last: NDArray[np.float32],
) -> NDArray[np.void]:  # fmt: skip
    """What a step did to the sampled weights, as the C function says it."""
    steps = np.zeros(len(sizes), STEP)
    there = np.arange(before.shape[1])[None, :] < sizes[:, None]
    bits = after.view(np.uint32)
    same = before.view(np.uint32) == bits
    pushed = (gradients != 0) & there
    with np.errstate(all="ignore"):
        steps["update_squares"] = ((after.astype(float) - before) ** 2 * there).sum(1)
        steps["weight_squares"] = (after.astype(float) ** 2 * there).sum(1)
        moved, pushes = after.astype(float) - before, gradients.astype(float) * there
        old_pushes, old_moved = np.split(last, 2)
        for name, product in (
            ("gradient_squares", pushes * pushes), ("along", pushes * moved),
            ("again", pushes * old_pushes), ("straight", moved * old_moved),
        ):  # fmt: skip
            steps[name] = (product * there).sum(1)
        last[:] = np.concatenate([pushes, (after - before) * there])
    steps["changed"] = (~same & there).sum(1)
    steps["pushed"] = pushed.sum(1)
    steps["absorbed"] = (pushed & same).sum(1)
    steps["not_finite"] = (((bits & 0x7F800000) == 0x7F800000) & there).sum(1)
    odd = np.arange(1, 2 * before.shape[1], 2, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed = (bits.astype(np.uint64) + np.uint64(1)) * (_GOLDEN * odd)
        steps["digest"] = np.where(there, mixed, np.uint64(0)).sum(1)
    return steps


class HostReader:
    """Reads gradients in the host's memory at once, in C where it could be built."""

    defers = False

    def __init__(self, parameters: Sequence[Tensor], fused: Fused | str | None = None) -> None:
        found = load_fused() if fused is None else fused
        self.fused = None if isinstance(found, str) else found
        self.reason = found if isinstance(found, str) else ""
        self.sizes = np.array([_size(item) for item in parameters], np.int64)
        self._sizes = Pinned(self.sizes)
        kinds = [KINDS.get(item.dtype, 0) for item in parameters]
        self._kinds = Pinned(np.array(kinds, np.int32))
        self._count = len(parameters)
        self._all_there = np.ones(self._count, np.bool_)
        # asking every tensor what it is costs more than reading a small one
        self._simple = all(_is_simple(item) for item in parameters)
        self._read_as = [p.dtype if p.dtype in KINDS else torch.float32 for p in parameters]
        self._numels: list[int] = self.sizes.tolist()
        self._usual: Pinned | None = None
        """Where the weights lie, and again as a list, which is compared faster."""
        self._places: list[int] = []
        self._last = Pinned(np.zeros((2 * self._count, WIDTH), np.float32))
        """Sampled gradients and steps of the last time."""
        self._strides: list[tuple[int, ...]] | None = None
        self.moved = False
        """The weights have been found in another place than before."""
        self.relaid = False
        """The weights lie in another order than before: their samples are of other values."""

    def _dense(self, tensors: Sequence[Tensor | None]) -> list[Tensor | None]:
        """What can be read by address: of the kind and the size of its parameter, without holes."""
        if self._simple:
            with contextlib.suppress(TypeError):  # a gradient is missing
                if (
                    all(map(_is_contiguous, tensors))
                    and list(map(_dtype, tensors)) == self._read_as
                    and list(map(_numel, tensors)) == self._numels
                ):
                    return list(tensors)
        return [
            None if item is None else _fitting(item, dtype, size)
            for item, dtype, size in zip(tensors, self._read_as, self._numels, strict=True)
        ]

    def read(self, beat: int, gradients: Sequence[Tensor | None], query: Query) -> list[Reading]:
        """One reading, there at once."""
        dense = self._dense(gradients)
        if self.fused is None:
            present = np.array([g is not None for g in dense], np.bool_)
            return [self._read_slowly(beat, dense, present, query)]
        pointers, sizes = self._pointers(dense)
        present = self._all_there if sizes is self._sizes else pointers != 0
        rows = np.empty(self._count, ROW)  # every row is filled
        histograms = np.zeros((self._count, 256), np.int64) if query.histogram else None
        samples = np.empty((self._count, WIDTH), np.float32) if query.samples else None
        squares = self.fused.read(
            pointers, sizes, self._kinds, *query.pinned, rows, histograms, samples
        )
        return [Reading(beat, rows, present, True, samples, histograms, squares)]

    def _read_slowly(
        self, beat: int, dense: Sequence[Tensor | None], present: NDArray[np.bool_], query: Query
    ) -> Reading:
        samples = torch_samples(dense) if query.samples else None
        if query.histogram:
            rows, histograms = torch_rows(dense, query)
            return Reading(beat, rows, present, True, samples, histograms)
        rows = np.zeros(self._count, ROW)
        _norms_only(rows, present, torch._foreach_norm([g for g in dense if g is not None]))
        return Reading(beat, rows, present, False, samples)

    def _pointers(self, dense: Sequence[Tensor | None]) -> tuple[NDArray[np.uint64], Pinned]:
        with contextlib.suppress(TypeError):  # a gradient is missing
            pointers = np.fromiter(map(_address, dense), np.uint64, self._count)
            if pointers.min(initial=_HIGH) >= _HIGH:
                return pointers, self._sizes
        places = [0 if item is None else address_of(item) for item in dense]
        sizes = np.array([n if place else 0 for place, n in zip(places, self.sizes, strict=True)])
        return np.array(places, np.uint64), Pinned(sizes.astype(np.int64))

    def sample(self, tensors: Sequence[Tensor]) -> NDArray[np.float32]:
        """Evenly spread values of the weights."""
        if self.fused is None:
            return torch_samples(self._dense(tensors))
        out = np.empty((self._count, WIDTH), np.float32)
        if self._simple and self._usual is not None:
            if list(map(_address, tensors)) == self._places:  # what lies there was looked at before
                self.fused.sample(self._usual, self._sizes, self._kinds, out)
                return out
            self.moved = True
        return self._sample_anew(tensors, out)

    def sample_again(
        self, tensors: Sequence[Tensor], then: NDArray[np.float32] | None, beat: int
    ) -> NDArray[np.float32]:
        """Values of the weights; the old sample itself where a quarter of it is as it was.

        What changes weights changes many of them, and each quarter has its turn.
        """
        if then is not None and self.fused is not None and self._simple and self._usual is not None:
            if list(map(_address, tensors)) == self._places and self.fused.same(
                self._usual, self._sizes, self._kinds, then, beat % _QUARTERS, _QUARTERS
            ):
                return then
        return self.sample(tensors)

    def _sample_anew(
        self, tensors: Sequence[Tensor], out: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        assert self.fused is not None
        strides = [t.stride() for t in tensors]
        self.relaid = self.relaid or (self._strides is not None and strides != self._strides)
        self._strides = strides
        if self._simple and any(
            t.dtype is not dtype or not t.is_cpu
            for t, dtype in zip(tensors, self._read_as, strict=True)
        ):
            return torch_samples([t.cpu() for t in tensors])
        dense = self._dense(tensors)
        pointers, sizes = self._pointers(dense)
        all_there = all(now is then for now, then in zip(dense, tensors, strict=True))
        places = Pinned(pointers)
        self._usual = places if all_there and pointers.all() else None
        self._places = pointers.tolist()
        self.fused.sample(places, sizes, self._kinds, out)
        return out

    def step(
        self, before: NDArray[np.float32], after: NDArray[np.float32],
        gradients: NDArray[np.float32], digests: bool = True,
    ) -> NDArray[np.void]:  # fmt: skip
        """What a step did to the sampled weights."""
        if self.fused is None:
            return numpy_step(self.sizes, before, after, gradients, self._last.array)
        steps = np.zeros(self._count, STEP)
        self.fused.step(self._sizes, before, after, gradients, self._last, digests, steps)
        return steps


class DeviceReader:
    """Reads gradients on an accelerator and never waits for it.

    Norms are computed by multi-tensor kernels into a ring on the device, and travel to pinned
    memory every `every` beats; a reading arrives once its copy has. Counts come from samples.
    """

    defers = True
    moved = relaid = False

    def __init__(self, parameters: Sequence[Tensor], every: int = 10) -> None:
        self.sizes = np.array([_size(item) for item in parameters], np.int64)
        self._device = plain(parameters[0]).device
        self._every = every
        self._ring = torch.zeros(every, 2, len(parameters), device=self._device)
        self._waiting: list[Reading] = []
        self._flying: deque[tuple[Tensor, Tensor | None, list[Reading], object]] = deque()
        self._sampled: Tensor | None = None

    def read(self, beat: int, gradients: Sequence[Tensor | None], query: Query) -> list[Reading]:
        """Readings that have arrived by now; this one arrives later."""
        dense = [None if g is None else plain(g) for g in gradients]
        present = np.array([g is not None for g in dense])
        there = [g for g in dense if g is not None]
        slot = self._ring[len(self._waiting)]
        where = torch.as_tensor(np.flatnonzero(present))
        columns = (
            slice(None) if len(there) == len(dense) else where.to(self._device, non_blocking=True)
        )
        if there:
            slot[0, columns] = torch.stack(list(torch._foreach_norm(there))).float()
            slot[1, columns] = torch.stack(list(torch._foreach_norm(there, torch.inf))).float()
        self._waiting.append(Reading(beat, np.zeros(len(dense), ROW), present, False))
        if len(self._waiting) == self._every:
            self._send(dense, query)
        return list(self._arrived())

    def _send(self, dense: Sequence[Tensor | None], query: Query) -> None:
        sampled = None
        if query.samples and any(g is not None for g in dense):
            sampled = device_samples(dense, self._device)
        host = torch.empty(self._ring.shape, pin_memory=self._device.type == "cuda")
        host.copy_(self._ring, non_blocking=True)
        values = None
        if sampled is not None:
            values = torch.empty(sampled.shape, pin_memory=self._device.type == "cuda")
            values.copy_(sampled, non_blocking=True)
        event: object = None
        if self._device.type == "cuda":
            event = torch.cuda.Event()
            event.record()
        self._flying.append((host, values, self._waiting, event))
        self._waiting = []

    def _arrived(self) -> Iterator[Reading]:
        while self._flying:
            host, values, readings, event = self._flying[0]
            if event is not None and not event.query():  # type: ignore[attr-defined]
                return
            self._flying.popleft()
            for reading, slot in zip(readings, host.numpy(), strict=True):
                _fill_norms(reading.rows, reading.present, slot[0], slot[1])
            if values is not None:
                _count_samples(readings[-1], values.numpy(), self.sizes)
            yield from readings

    def sample(self, tensors: Sequence[Tensor]) -> NDArray[np.float32]:
        """Weights are not sampled on a device: it would mean waiting for it."""
        return np.zeros((len(tensors), WIDTH), np.float32)


def device_samples(dense: Sequence[Tensor | None], device: torch.device) -> Tensor:
    """One row of evenly spread values for every tensor, gathered by one kernel."""
    taken = [torch.zeros(WIDTH, device=device) if g is None or not g.numel() else _spread(g) for g in dense]  # fmt: skip
    whole = [torch.nn.functional.pad(item.float(), (0, WIDTH - len(item))) for item in taken]
    return torch.stack(whole)


def _count_samples(reading: Reading, values: NDArray[np.float32], sizes: NDArray[np.int64]) -> None:
    reading.samples = values
    there = np.arange(WIDTH)[None, :] < sizes[:, None]
    exponents = (np.abs(values).view(np.int32) >> 23).astype(np.int64)
    histograms = np.zeros((len(values), 256), np.int64)
    rows = np.repeat(np.arange(len(values)), WIDTH).reshape(values.shape)
    np.add.at(histograms, (rows[there], exponents[there]), 1)
    reading.histograms = histograms


def _fill_norms(
    rows: NDArray[np.void], present: NDArray[np.bool_], norms: NDArray[np.float32],
    largest: NDArray[np.float32],
) -> None:  # fmt: skip
    bad = ~np.isfinite(norms) & present
    fine = present & ~bad
    rows["sum_of_squares"][fine] = norms[fine].astype(float) ** 2
    rows["largest"][fine] = largest[fine]
    rows["nan"] = np.isnan(norms) & present
    rows["infinite"] = np.isinf(norms) & present


def _norms_only(
    rows: NDArray[np.void], present: NDArray[np.bool_], norms: Sequence[Tensor]
) -> None:
    values = np.zeros(len(rows), np.float32)
    if norms:
        values[present] = torch.stack([item.float() for item in norms]).numpy()
    _fill_norms(rows, present, values, values)


def _is_simple(tensor: Tensor) -> bool:
    return type(tensor) in (Tensor, torch.nn.Parameter) and tensor.dtype in KINDS


def _fitting(tensor: Tensor, dtype: torch.dtype, size: int) -> Tensor | None:
    """The memory of a tensor as it was agreed on; None where it is of another size or elsewhere."""
    whole = plain(tensor.detach())
    if not whole.is_cpu or whole.numel() != size:
        return None
    return whole if whole.dtype is dtype else whole.to(dtype)


def plain(tensor: Tensor) -> Tensor:
    """The dense local memory behind a parameter or a gradient: shard, real view, contiguous."""
    local = getattr(tensor, "to_local", None)
    if local is not None:
        tensor = local()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.detach())
    if tensor.dtype not in KINDS:
        tensor = tensor.detach().float()
    return tensor if tensor.is_contiguous() else _in_order(tensor.detach())


def _in_order(tensor: Tensor) -> Tensor:
    """Dense memory is read in its own order; only memory with holes is copied."""
    with contextlib.suppress(RuntimeError):
        order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
        moved = tensor.permute(order)
        if moved.is_contiguous():
            return moved
    return tensor.contiguous()


def _size(tensor: Tensor) -> int:
    return plain(tensor.detach()).numel()


__all__ = ["KINDS", "LEVELS", "WIDTH", "DeviceReader", "HostReader", "Query", "Reading", "plain"]
