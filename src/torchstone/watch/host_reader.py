"""Reads gradients in the host's memory at once, in C where it could be built."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchstone.watch.fused import ROW, STEP, Fused, Pinned, Pool, load_fused
from torchstone.watch.glance import HIGH, address_of
from torchstone.watch.reading import (
    KINDS,
    WIDTH,
    Query,
    Reading,
    norms_only,
    numpy_step,
    plain,
    size_of,
    torch_rows,
    torch_samples,
)

try:  # torch's own guard of compiled code; no part of its interface
    from torch._C._dynamo.guards import TensorGuards
except ImportError:
    TensorGuards = None  # type: ignore[assignment,misc]

_QUARTERS = 4
_HABIT = 4  # gradients that change their layout again and again are how this program works
_address: Callable[[Any], int] = Tensor.data_ptr
_dtype: Callable[[Any], torch.dtype] = Tensor.dtype.__get__  # type: ignore[attr-defined]
_is_contiguous: Callable[[Any], bool] = Tensor.is_contiguous
_numel: Callable[[Any], int] = Tensor.numel


class Alike:
    """Tells in one call that tensors are of the kind, the size and the layout of earlier ones."""

    def __init__(self) -> None:
        self._guards: Any = None
        self._changes = 0

    def __call__(self, tensors: Sequence[Tensor | None]) -> bool:
        """False where they are not, or where that cannot be told."""
        return self._guards is not None and bool(self._guards.check(*tensors))

    def learn(self, tensors: Sequence[Tensor | None]) -> None:
        """These are the ones to compare with from now on."""
        if TensorGuards is not None and self._changes < _HABIT:
            self._changes += 1
            with contextlib.suppress(TypeError):  # that of another torch wants other arguments
                self._guards = TensorGuards(
                    *tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None
                )


class Places:
    """Where the weights lie: to ask every tensor costs more than to look at its values."""

    def __init__(self) -> None:
        self.pinned: Pinned | None = None
        """None while they cannot be read by address."""
        self._all: list[int] = []
        self._quarters: list[list[int]] = []
        self._alive: list[Tensor] = []
        """Keeps the memory of weights that have never moved from being given away unseen."""
        self._turn = 0

    def learn(self, pointers: NDArray[np.uint64], tensors: Sequence[Tensor], whole: bool) -> None:
        """They lie here now; `whole`: all of them, as they are."""
        first = not self._all
        self.pinned = Pinned(pointers) if whole and pointers.all() else None
        self._all = pointers.tolist()
        self._quarters = [self._all[i::_QUARTERS] for i in range(_QUARTERS)]
        self._alive = [tensor.detach() for tensor in tensors] if first else []

    def hold(self, tensors: Sequence[Tensor]) -> bool:
        """The weights are where they were."""
        return list(map(_address, tensors)) == self._all

    def seem_to_hold(self, tensors: Sequence[Tensor]) -> bool:
        """The same after a step, which moves all or none: a quarter is asked where none has moved.

        The next look at all of them comes before the next step.
        """
        if not self._alive:
            return self.hold(tensors)
        self._turn = (self._turn + 1) % _QUARTERS
        return list(map(_address, tensors[self._turn :: _QUARTERS])) == self._quarters[self._turn]


class HostReader:
    """Reads gradients in the host's memory at once, in C where it could be built."""

    defers = False

    def __init__(self, parameters: Sequence[Tensor], fused: Fused | str | None = None) -> None:
        found = load_fused() if fused is None else fused
        self.fused = None if isinstance(found, str) else found
        self.reason = found if isinstance(found, str) else ""
        self.sizes = np.array([size_of(item) for item in parameters], np.int64)
        self._sizes = Pinned(self.sizes)
        kinds = [KINDS.get(item.dtype, 0) for item in parameters]
        self._kinds = Pinned(np.array(kinds, np.int32))
        self._count = len(parameters)
        self._all_there = np.ones(self._count, np.bool_)
        # asking every tensor what it is costs more than reading a small one
        self._simple = all(_is_simple(item) for item in parameters)
        self._read_as = [p.dtype if p.dtype in KINDS else torch.float32 for p in parameters]
        self._numels: list[int] = self.sizes.tolist()
        self._places, self._alike = Places(), Alike()
        self._last = Pinned(np.zeros((2 * self._count, WIDTH), np.float32))
        """Sampled gradients and steps of the last time."""
        self._rows, self._steps = Pool(self._count, ROW), Pool(self._count, STEP)
        self._samples = Pool((self._count, WIDTH), np.float32)
        self._strides: list[tuple[int, ...]] | None = None
        self.moved = False
        """The weights have been found in another place than before."""
        self.relaid = False
        """The weights lie in another order than before: their samples are of other values."""

    def release(self) -> None:
        """Nothing is read for now: let the memory of the weights go."""
        self._places = Places()

    def _dense(self, tensors: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """What can be read by address: of the kind and the size of its parameter, without holes."""
        if self._simple:
            with contextlib.suppress(TypeError):  # a gradient is missing
                if (
                    all(map(_is_contiguous, tensors))
                    and list(map(_dtype, tensors)) == self._read_as
                    and list(map(_numel, tensors)) == self._numels
                ):
                    return tensors
        return [
            None if item is None else _fitting(item, dtype, size)
            for item, dtype, size in zip(tensors, self._read_as, self._numels, strict=True)
        ]

    def _dense_gradients(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        if self._alike(gradients):
            return gradients
        dense = self._dense(gradients)
        if dense is gradients:
            self._alike.learn(gradients)
        return dense

    def read(self, beat: int, gradients: Sequence[Tensor | None], query: Query) -> list[Reading]:
        """One reading, there at once."""
        dense = self._dense_gradients(gradients)
        if self.fused is None:
            present = np.array([g is not None for g in dense], np.bool_)
            return [self._read_slowly(beat, dense, present, query)]
        pointers, sizes = self._pointers(dense)
        present = self._all_there if sizes is self._sizes else pointers != 0
        rows = self._rows.take()  # every row is filled
        histograms = np.zeros((self._count, 256), np.int64) if query.histogram else None
        samples = self._samples.take() if query.samples else None
        squares = self.fused.read(
            pointers, sizes, self._kinds, *query.pinned, rows, histograms, samples
        )
        found = None if samples is None else samples.array
        return [Reading(beat, rows.array, present, True, found, histograms, squares)]

    def _read_slowly(
        self, beat: int, dense: Sequence[Tensor | None], present: NDArray[np.bool_], query: Query
    ) -> Reading:
        samples = torch_samples(dense) if query.samples else None
        if query.histogram:
            rows, histograms = torch_rows(dense, query)
            return Reading(beat, rows, present, True, samples, histograms)
        rows = np.zeros(self._count, ROW)
        if present.any():
            norms_only(rows, present, torch._foreach_norm([g for g in dense if g is not None]))
        return Reading(beat, rows, present, False, samples)

    def _pointers(self, dense: Sequence[Tensor | None]) -> tuple[NDArray[np.uint64], Pinned]:
        with contextlib.suppress(TypeError):  # a gradient is missing
            pointers = np.fromiter(map(_address, dense), np.uint64, self._count)
            if not self._count or pointers.min() >= HIGH:
                return pointers, self._sizes
        places = [0 if item is None else address_of(item) for item in dense]
        sizes = np.array([n if place else 0 for place, n in zip(places, self.sizes, strict=True)])
        return np.array(places, np.uint64), Pinned(sizes.astype(np.int64))

    def sample(self, tensors: Sequence[Tensor], stepped: bool = False) -> NDArray[np.float32]:
        """Evenly spread values of the weights; `stepped`: nothing but a step came in between."""
        if self.fused is None:
            return torch_samples(self._dense(tensors))
        out = self._samples.take()
        places = self._places
        if self._simple and places.pinned is not None:
            if places.seem_to_hold(tensors) if stepped else places.hold(tensors):
                self.fused.sample(places.pinned, self._sizes, self._kinds, out)
                return out.array
            self.moved = True
        return self._sample_anew(tensors, out)

    def sample_again(
        self, tensors: Sequence[Tensor], then: NDArray[np.float32] | None, beat: int
    ) -> NDArray[np.float32]:
        """Values of the weights; the old sample itself where a quarter of it is as it was.

        What changes weights changes many of them, and each quarter has its turn.
        """
        pinned = self._places.pinned if self._simple else None
        if then is not None and pinned is not None and self._places.hold(tensors):
            assert self.fused is not None
            if self.fused.same(pinned, self._sizes, self._kinds, then, beat % _QUARTERS, _QUARTERS):
                return then
        return self.sample(tensors)

    def _sample_anew(self, tensors: Sequence[Tensor], out: Pinned) -> NDArray[np.float32]:
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
        whole = all(now is then for now, then in zip(dense, tensors, strict=True))
        self._places.learn(pointers, tensors, whole)
        self.fused.sample(Pinned(pointers), sizes, self._kinds, out)
        return out.array

    def step(
        self, before: NDArray[np.float32], after: NDArray[np.float32],
        gradients: NDArray[np.float32], digests: bool = True,
    ) -> NDArray[np.void]:  # fmt: skip
        """What a step did to the sampled weights."""
        if self.fused is None:
            return numpy_step(self.sizes, before, after, gradients, self._last.array)
        steps = self._steps.take()
        self.fused.step(self._sizes, before, after, gradients, self._last, digests, steps)
        return steps.array


def _is_simple(tensor: Tensor) -> bool:
    return type(tensor) in (Tensor, torch.nn.Parameter) and tensor.dtype in KINDS


def _fitting(tensor: Tensor, dtype: torch.dtype, size: int) -> Tensor | None:
    """The memory of a tensor as it was agreed on; None where it is of another size or elsewhere."""
    whole = plain(tensor.detach())
    if not whole.is_cpu or whole.numel() != size:
        return None
    return whole if whole.dtype is dtype else whole.to(dtype)
