"""Bytes alive on the device over the run, by kind, from the life of fake storages."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any, NamedTuple

import torch
from torch import nn

from torchstone.core.place import NOWHERE, Place
from torchstone.dryrun.record import Memory, MemoryPart
from torchstone.dryrun.session import Session, is_fake, tensors_in
from torchstone.observe.compat.autograd import graph_task
from torchstone.observe.training import TRAINING, StepBegins, StepEnds
from torchstone.observe.where import PROGRAM

PARAMETER, GRADIENT, OPTIMIZER, ACTIVATION = (
    "parameters",
    "gradients",
    "optimizer state",
    "activations",
)
POINTS = 400
"""Points of the curve: as many as a chart has columns."""


class _Piece(NamedTuple):
    """One storage that is alive."""

    size: int
    kind: str
    module: str
    number: int


class DeviceMemory:
    """Follows storages of fake tensors on the device (any device, where ranks are played)."""

    def __init__(self, session: Session, everywhere: bool) -> None:
        self._session = session
        self._everywhere = everywhere
        self._alive: dict[int, _Piece] = {}
        self.live = 0
        self.peak = 0
        self.in_step = False
        self._kinds: Counter[str] = Counter()
        self._modules: Counter[str] = Counter()
        self._at_peak: Counter[str] = Counter()
        self._modules_at_peak: Counter[str] = Counter()
        self._peak_spot: Place = NOWHERE
        self._peak_phase = ""
        self._peak_number = 0
        self._count = 0
        self._curve: list[tuple[int, str]] = []

    def observe(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Count what an operator made."""
        del func, args, kwargs
        for tensor in tensors_in(result):
            if is_fake(tensor) and (self._everywhere or tensor.fake_device.type != "cpu"):  # type: ignore[attr-defined]
                self._take(tensor)

    def _take(self, tensor: torch.Tensor) -> None:
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return  # sparse tensors have none
        key = storage._cdata
        if key in self._alive:
            return
        self._count += 1
        stack = self._session.modules
        piece = _Piece(storage.nbytes(), OPTIMIZER if self.in_step else ACTIVATION,
                       type(stack[-1]).__name__ if stack else "", self._count)  # fmt: skip
        self._alive[key] = piece
        weakref.finalize(storage, self._gone, key)
        self._kinds[piece.kind] += piece.size
        if piece.kind == ACTIVATION:
            self._modules[piece.module] += piece.size
        self.live += piece.size
        self._curve.append((self.live, self.phase()))
        if self.live > self.peak:
            self._note_peak()

    def phase(self) -> str:
        if self.in_step:
            return "optimizer"
        if graph_task() != -1:
            return "backward"
        return "forward" if self._session.modules else "other"

    def _gone(self, key: int) -> None:
        piece = self._alive.pop(key, None)
        if piece is None:
            return
        self.live -= piece.size
        self._kinds[piece.kind] -= piece.size
        if piece.kind == ACTIVATION:
            self._modules[piece.module] -= piece.size

    def _note_peak(self) -> None:
        self.peak = self.live
        self._peak_spot = PROGRAM.here(4)
        self._peak_phase = self.phase()
        self._peak_number = self._count
        self._at_peak = self._kinds.copy()
        self._modules_at_peak = self._modules.copy()

    def mark(self, tensor: torch.Tensor, kind: str) -> None:
        """It has become clear what a tensor is; what is alive now was so at the peak, if older."""
        if not is_fake(tensor) or tensor.layout is not torch.strided:
            return
        key = tensor.untyped_storage()._cdata
        piece = self._alive.get(key)
        if piece is None or piece.kind == kind:
            return
        sums = [(self._kinds, self._modules)]
        if piece.number <= self._peak_number:
            sums.append((self._at_peak, self._modules_at_peak))
        for kinds, modules in sums:
            kinds[piece.kind] -= piece.size
            kinds[kind] += piece.size
            if piece.kind == ACTIVATION:
                modules[piece.module] -= piece.size
        self._alive[key] = piece._replace(kind=kind)

    def result(self) -> Memory | None:
        """Peak and curve; None when nothing was on the device."""
        if not self.peak:
            return None
        curve = self._thinned()
        return Memory(
            self.peak,
            tuple(MemoryPart(name, size) for name, size in self._at_peak.most_common() if size),
            self._peak_spot,
            self._peak_phase,
            tuple(
                MemoryPart(name, size)
                for name, size in self._modules_at_peak.most_common(8)
                if size
            ),
            tuple(size for size, _ in curve),
            tuple(phase for _, phase in curve),
        )

    def _thinned(self) -> list[tuple[int, str]]:
        """The largest of each stretch, so that peaks stay."""
        every = max(1, len(self._curve) // POINTS)
        return [max(self._curve[i : i + every]) for i in range(0, len(self._curve), every)]


def follow_memory(session: Session, everywhere: bool) -> DeviceMemory:
    """From now on bytes on the device are counted."""
    memory = DeviceMemory(session, everywhere)

    def before_step(event: StepBegins) -> None:
        for group in event.optimizer.param_groups:
            for parameter in group["params"]:
                _mark_parameter(memory, parameter)
        memory.in_step = True

    def after_step(_: StepEnds) -> None:
        memory.in_step = False

    TRAINING.subscribe(before_step, StepBegins)
    TRAINING.subscribe(after_step, StepEnds)
    return memory


def _mark_parameter(memory: DeviceMemory, parameter: nn.Parameter) -> None:
    local = getattr(parameter, "_local_tensor", parameter)
    memory.mark(local, PARAMETER)
    if parameter.grad is not None:
        memory.mark(getattr(parameter.grad, "_local_tensor", parameter.grad), GRADIENT)
