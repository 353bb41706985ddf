"""Counting a real step on real tensors, with the counters of the meta run.

with count_step(model) as step:
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
print(step.report.total["flops"])
"""

from __future__ import annotations

import contextlib
import time
from types import TracebackType

import torch
from torch import nn

from torchstone.cost.arguments import module
from torchstone.cost.counting.engine import alone, unwrapped
from torchstone.cost.counting.real_mode import RealMode
from torchstone.cost.measure import report_of
from torchstone.cost.records.books import Books, Scope
from torchstone.cost.records.facts import facts_of, tensors_of
from torchstone.cost.records.ledger import FORWARD, OPTIMIZER, Cost, Memory, thinned
from torchstone.cost.reporting.report import CostReport
from torchstone.cost.stages import StageMap
from torchstone.observe.training import TRAINING, StepBegins, StepEnds
from torchstone.observe.undo import Undo, keep_modes
from torchstone.runtime.modules import Paths, parts_of
from torchstone.runtime.on_meta.branches import as_plain_code
from torchstone.runtime.on_meta.eager import uncompiled
from torchstone.runtime.on_meta.storage import Storages


class count_step:  # noqa: N801  reads as a verb where it is used
    """Counts what runs while it is open; `cost` and `report` are there afterwards."""

    def __init__(self, model: nn.Module, *, stages: StageMap | str | None = None) -> None:
        self._model = unwrapped(module("count_step", model))
        self._stages = stages
        self._books = Books()
        self._parts = parts_of(self._model)
        self._paths: Paths[Scope] = Paths(self._parts, self._books.place)
        self._paths.own()
        self._mode = RealMode(self._paths, self._books)
        self._stepping = _Stepping(self._paths, self._books, self._mode.storages)
        self._start = 0.0
        self.cost = Cost({}, {})

    @property
    def report(self) -> CostReport:
        """What was counted, as a report."""
        return report_of(
            self.cost,
            subject=type(self._model).__name__,
            stages=self._stages,
            config=getattr(self._model, "config", None),
        )

    def __enter__(self) -> count_step:
        with contextlib.ExitStack() as stack:
            stack.enter_context(alone())
            undo = stack.enter_context(Undo())
            for tensor in tensors_of(self._parts):
                self._mode.storages.watch(tensor, "static", None)
            keep_modes(undo)
            uncompiled(undo)
            as_plain_code(undo)
            self._paths.follow(undo)
            self._stepping.open(undo)
            self._start = time.process_time()
            stack.enter_context(self._mode)
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()
        train = self._mode.forward_over
        self.cost = Cost(
            entries=self._books.entries(),
            modules=facts_of(self._parts, self._books, self._mode.held, {}),
            memory=self._memory(train),
            uncounted=self._books.uncounted(),
            elsewhere=dict(self._paths.elsewhere),
            train=train,
            seconds=time.process_time() - self._start,
        )

    def _memory(self, train: bool) -> Memory:
        parameters = [p for part in self._parts for p in part.module._parameters.values()]
        own = {id(p): p for p in parameters if p is not None}
        buffers = [b for part in self._parts for b in part.module._buffers.values()]
        peaks = self._stepping.corrected(self._books.peaks())
        static = self._mode.storages.size_of("static")
        held = sum(self._mode.held.values())
        return Memory(
            parameters=sum(p.numel() * p.element_size() for p in own.values()),
            buffers=sum(b.numel() * b.element_size() for b in buffers if b is not None),
            gradients=sum(
                p.grad.numel() * p.grad.element_size() for p in own.values() if p.grad is not None
            ),
            optimizer=self._stepping.state_bytes,
            activations=held if train else max(peaks.get(FORWARD, static) - static, 0),
            peaks=peaks,
            timeline=thinned(self._mode.timeline),
        )


class _Stepping:
    """While an optimizer steps, the page is that of the optimizer."""

    def __init__(self, paths: Paths[Scope], books: Books, storages: Storages) -> None:
        self._paths, self._books, self._storages = paths, books, storages
        self.state_bytes = 0
        self._there_before = 0
        """State that earlier steps made: alive all along, and first seen when a step begins."""
        self._before: list[Scope] = []

    def open(self, undo: Undo) -> None:
        undo.later(TRAINING.subscribe(self._begin, StepBegins).close)
        undo.later(TRAINING.subscribe(self._end, StepEnds).close)

    def _begin(self, event: StepBegins) -> None:
        self._there_before += sum(
            self._storages.watch(item, "optimizer", None) for item in _states(event.optimizer)
        )
        self._before.append(self._paths.current)
        self._paths.current = self._books.scope("", OPTIMIZER)

    def _end(self, event: StepEnds) -> None:
        self._paths.current = self._before.pop()
        for item in _states(event.optimizer):
            self._storages.turn(item, "optimizer")
        self.state_bytes = self._storages.size_of("optimizer")

    def corrected(self, peaks: dict[str, int]) -> dict[str, int]:
        """Peaks with the state that was there from the start."""
        return {
            phase: size + (0 if phase == OPTIMIZER else self._there_before)
            for phase, size in peaks.items()
        }


def _states(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [
        item
        for state in optimizer.state.values()
        for item in state.values()
        if isinstance(item, torch.Tensor) and item.dim()
    ]
