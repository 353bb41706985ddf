"""Reads gradients that live on an accelerator, and never waits for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchstone.observe.compat.tensors import foreach_norm
from torchstone.watch.read.fused import ROW
from torchstone.watch.read.reading import WIDTH, Query, Reading, fill_norms, plain, size_of, spread


class DeviceReader:
    """Reads gradients on an accelerator and never waits for it.

    Norms are computed by multi-tensor kernels into a ring on the device, and travel to pinned
    memory every `every` updates; a reading arrives once its copy has. Counts come from samples.
    Weights are not sampled: it would mean waiting.
    """

    defers = True
    moved = False

    def __init__(self, parameters: Sequence[Tensor], every: int = 10) -> None:
        self.sizes = np.array([size_of(item) for item in parameters], np.int64)
        self._device = plain(parameters[0]).device
        self._every = every
        self._ring = torch.zeros(every, 2, len(parameters), device=self._device)
        self._waiting: list[Reading] = []
        self._flying: deque[tuple[Tensor, Tensor | None, list[Reading], object]] = deque()
        self._sampled: Tensor | None = None

    def accept_place(self) -> None:
        """Weights are not read, so where they lie does not matter."""

    def take_relaid(self) -> bool:
        """Weights are not sampled."""
        return False

    def recognises(self, gradients: Sequence[Tensor | None]) -> bool:  # noqa: ARG002
        """Nothing is known of earlier ones."""
        return False

    def read(self, update: int, gradients: Sequence[Tensor | None], query: Query) -> list[Reading]:
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
            slot[0, columns] = torch.stack(list(foreach_norm(there))).float()
            slot[1, columns] = torch.stack(list(foreach_norm(there, torch.inf))).float()
        self._waiting.append(Reading(update, np.zeros(len(dense), ROW), present, False))
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
                fill_norms(reading.rows, reading.present, slot[0], slot[1])
            if values is not None:
                _count_samples(readings[-1], values.numpy(), self.sizes)
            yield from readings


def device_samples(dense: Sequence[Tensor | None], device: torch.device) -> Tensor:
    """One row of evenly spread values for every tensor, gathered by one kernel."""
    taken = [torch.zeros(WIDTH, device=device) if g is None or not g.numel() else spread(g) for g in dense]  # fmt: skip
    whole = [torch.nn.functional.pad(item.float(), (0, WIDTH - len(item))) for item in taken]
    return torch.stack(whole)


def _count_samples(reading: Reading, values: NDArray[np.float32], sizes: NDArray[np.int64]) -> None:
    there = np.arange(WIDTH)[None, :] < sizes[:, None]
    exponents = (np.abs(values).view(np.int32) >> 23).astype(np.int64)
    histograms = np.zeros((len(values), 256), np.int64)
    rows = np.repeat(np.arange(len(values)), WIDTH).reshape(values.shape)
    np.add.at(histograms, (rows[there], exponents[there]), 1)
    reading.keep_samples(values, histograms)
