"""Reads gradients in the host's memory at once, in C where it could be built."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchstone.observe.compat.compiler import TensorGuards
from torchstone.observe.compat.tensors import foreach_norm
from torchstone.watch.read.fused import ROW, STEP, Fused, Pinned, Pool, load_fused
from torchstone.watch.read.reading import (
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
from torchstone.watch.read.tensor_summary import HIGH, address_of

_QUARTERS = 4
_HABIT = 4  # gradients that change their layout again and again are how this program works
_address: Callable[[Any], int] = Tensor.data_ptr
_dtype: Callable[[Any], torch.dtype] = Tensor.dtype.__get__  # type: ignore[attr-defined]
_is_contiguous: Callable[[Any], bool] = Tensor.is_contiguous
_is_negated: Callable[[Any], bool] = Tensor.is_neg
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
        self._alike = Alike()
        self._recognised: Sequence[Tensor | None] | None = None
        self._usual: Pinned | None = None
        """Where the weights lie, and again as a list, which is compared faster."""
        self._places: list[int] = []
        self._last = Pinned(np.zeros((2 * self._count, WIDTH), np.float32))
        """Sampled gradients and steps of the last time."""
        self._rows, self._steps = Pool(self._count, ROW), Pool(self._count, STEP)
        self._samples = Pool((self._count, WIDTH), np.float32)
        self._strides: list[tuple[int, ...]] | None = None
        self.moved = False
        """The weights have been found in another place than before."""
        self.relaid = False
        """The weights lie in another order than before: their samples are of other values."""

    def accept_place(self) -> None:
        """Where the weights are now is where they are expected from now on."""
        self.moved = False

    def take_relaid(self) -> bool:
        """Whether the weights lie in another order than when this was asked last."""
        relaid, self.relaid = self.relaid, False
        return relaid

    def recognises(self, gradients: Sequence[Tensor | None]) -> bool:
        """They are of the kind, the size and the layout of earlier ones, so dense and all there."""
        self._recognised = gradients if self._alike(gradients) else None
        return self._recognised is not None

    def _dense(self, tensors: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """What can be read by address: of the kind and the size of its parameter, without holes."""
        if self._simple:
            with contextlib.suppress(TypeError):  # a gradient is missing
                if (
                    all(map(_is_contiguous, tensors))
                    and not any(map(_is_negated, tensors))
                    and list(map(_dtype, tensors)) == self._read_as
                    and list(map(_numel, tensors)) == self._numels
                ):
                    return tensors
        return [
            None if item is None else _fitting(item, dtype, size)
            for item, dtype, size in zip(tensors, self._read_as, self._numels, strict=True)
        ]

    def _dense_gradients(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        known, self._recognised = self._recognised, None  # the program may let them go any time
        if gradients is known:
            return gradients
        dense = self._dense(gradients)
        if dense is gradients:
            self._alike.learn(gradients)
        return dense

    def read(self, update: int, gradients: Sequence[Tensor | None], query: Query) -> list[Reading]:
        """One reading, there at once."""
        dense = self._dense_gradients(gradients)
        if self.fused is None:
            present = np.array([g is not None for g in dense], np.bool_)
            return [self._read_slowly(update, dense, present, query)]
        pointers, sizes, present = self._pointers(dense)
        rows = self._rows.take()  # every row is filled
        histograms = np.zeros((self._count, 256), np.int64) if query.histogram else None
        samples = self._samples.take() if query.samples else None
        squares = self.fused.read(
            pointers, sizes, self._kinds, *query.pinned, rows, histograms, samples
        )
        found = None if samples is None else samples.array
        return [Reading(update, rows.array, present, True, found, histograms, squares)]

    def _read_slowly(
        self, update: int, dense: Sequence[Tensor | None], present: NDArray[np.bool_], query: Query
    ) -> Reading:
        samples = torch_samples(dense) if query.samples else None
        if query.histogram:
            rows, histograms = torch_rows(dense, query)
            return Reading(update, rows, present, True, samples, histograms)
        rows = np.zeros(self._count, ROW)
        if present.any():
            norms_only(rows, present, foreach_norm([g for g in dense if g is not None]))
        return Reading(update, rows, present, False, samples)

    def _pointers(
        self, dense: Sequence[Tensor | None]
    ) -> tuple[NDArray[np.uint64], Pinned, NDArray[np.bool_]]:
        """Where they lie, how much may be read there, and which of them there are."""
        with contextlib.suppress(TypeError):  # a gradient is missing
            pointers = np.fromiter(map(_address, dense), np.uint64, self._count)
            if not self._count or pointers.min() >= HIGH:
                return pointers, self._sizes, self._all_there
        places = [0 if item is None else address_of(item) for item in dense]
        sizes = np.array([n if place else 0 for place, n in zip(places, self.sizes, strict=True)])
        there = [  # what is empty lies nowhere
            item is not None and (place > 0 or item.numel() == 0)
            for place, item in zip(places, dense, strict=True)
        ]
        return np.array(places, np.uint64), Pinned(sizes.astype(np.int64)), np.array(there)

    def sample(self, tensors: Sequence[Tensor]) -> NDArray[np.float32]:
        """Evenly spread values of the weights."""
        if self.fused is None:
            self._note_strides(tensors)
            return torch_samples(self._dense(tensors))
        out = self._samples.take()
        if self._simple and self._usual is not None:
            if list(map(_address, tensors)) == self._places:  # what lies there was looked at before
                self.fused.sample(self._usual, self._sizes, self._kinds, out)
                return out.array
            self.moved = True
        return self._sample_anew(tensors, out)

    def sample_again(
        self, tensors: Sequence[Tensor], then: NDArray[np.float32] | None, update: int
    ) -> NDArray[np.float32]:
        """Values of the weights; the old sample itself where a quarter of it is as it was.

        What changes weights changes many of them, and each quarter has its turn.
        """
        if then is not None and self.fused is not None and self._simple and self._usual is not None:
            if list(map(_address, tensors)) == self._places and self.fused.same(
                self._usual, self._sizes, self._kinds, then, update % _QUARTERS, _QUARTERS
            ):
                return then
        return self.sample(tensors)

    def _note_strides(self, tensors: Sequence[Tensor]) -> None:
        strides = [t.stride() for t in tensors]
        self.relaid = self.relaid or (self._strides is not None and strides != self._strides)
        self._strides = strides

    def _sample_anew(self, tensors: Sequence[Tensor], out: Pinned) -> NDArray[np.float32]:
        assert self.fused is not None
        self._note_strides(tensors)
        if self._simple and any(
            t.dtype is not dtype or not t.is_cpu
            for t, dtype in zip(tensors, self._read_as, strict=True)
        ):
            return torch_samples([t.cpu() for t in tensors])
        dense = self._dense(tensors)
        pointers, sizes, _ = self._pointers(dense)
        whole = all(now is then for now, then in zip(dense, tensors, strict=True))
        places = Pinned(pointers)
        self._usual = places if whole and pointers.all() else None
        self._places = pointers.tolist()
        self.fused.sample(places, sizes, self._kinds, out)
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
