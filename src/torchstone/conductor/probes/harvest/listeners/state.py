"""What the listeners of one run share."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from torchstone.conductor.probes.harvest.loops import LoopCutter
from torchstone.conductor.probes.harvest.operators import OperatorTrace
from torchstone.conductor.probes.harvest.precision import RunMode
from torchstone.conductor.probes.harvest.recording import (
    Recording,
    Signature,
)
from torchstone.core.place import Place
from torchstone.observe.where import Where

MOST_BATCHES = 12
"""Of one pass over a loader: three optimizer steps with an accumulation of four."""
TRACED_STEPS = 2
_FAR = 1000
"""More calls than stand in each other."""
WEIGHED_STEPS = 6
"""Optimizer steps whose losses are weighed: each costs a backward pass more."""


class Enough(BaseException):
    """The run has shown what there is to see in its time."""


class Hooks:
    """Listens to one run."""

    def __init__(self, run: Recording, where: Where, mode: RunMode, seconds: float) -> None:
        self.run, self.where, self.mode, self.seconds = run, where, mode, seconds
        self.deadline = math.inf
        """Of CPU time; known once a model was called: what a script imports before is not its doing."""
        self.quiet = False
        """Only modules are recorded: what runs is a test or a probe."""
        self.depth = 0
        """Of calls of the project's modules; far below zero while torch walks through modules."""
        self.calls = 0
        self.evaluates = False
        """A model is being called in evaluation mode."""
        self.classes: dict[type, bool] = {}
        self.counts: dict[tuple[int, bool, bool], int] = {}
        self.scale = 1.0
        """The loss scale that the gradients carry now."""
        self.scaled: set[int] = set()
        self._keep: Any = None
        """The last scaled loss: its id must not be given to another tensor."""
        self.backwards = 0
        self.used: dict[int, torch.Tensor] = {}
        """Gradients that a step has used, by parameter."""
        self.stale = False
        self.unclipped: dict[int, Signature] = {}
        """Gradients before they were clipped, by parameter."""
        self.tokens: list[torch.Tensor] = []
        self.passes: dict[int, int] = {}
        self.made: dict[int, Place] = {}
        self.loss_values: list[torch.Tensor] = []
        self.in_loss = False
        self.terms: list[torch.Tensor] = []
        self.loops = LoopCutter(where)
        self.trace = OperatorTrace(where, self._is_traced, lambda: mode.switched_off)

    def _is_traced(self) -> bool:
        """The first two optimizer steps, and after them what evaluates or runs without gradients."""
        if self.quiet:
            return False
        return self.run.steps < TRACED_STEPS or self.evaluates or not torch.is_grad_enabled()

    def current_scale(self) -> float:
        return float(self.run.scalers[-1].get_scale()) if self.run.scalers else 1.0

    def silence(self) -> None:
        """From now on only modules are recorded."""
        self.quiet = True

    # -- calls

    @contextlib.contextmanager
    def inside_call(self, module: nn.Module, top: bool) -> Iterator[None]:
        """A module of the project runs."""
        self.calls += 1
        if top and not self.quiet:
            self.evaluates = not module.training
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            self.evaluates = self.evaluates and not top

    @contextlib.contextmanager
    def inside_torch(self) -> Iterator[None]:
        """torch walks through modules: their calls are not the script's."""
        self.depth -= _FAR
        try:
            yield
        finally:
            self.depth += _FAR

    @contextlib.contextmanager
    def inside_loss(self) -> Iterator[None]:
        """One loss function may call another."""
        self.in_loss = True
        try:
            yield
        finally:
            self.in_loss = False

    def take_terms(self) -> list[torch.Tensor]:
        """Scalars that modules gave back since this was asked last."""
        terms, self.terms = self.terms, []
        return terms

    def take_loss_values(self) -> list[torch.Tensor]:
        """What loss functions gave since this was asked last."""
        values, self.loss_values = self.loss_values, []
        return values

    # -- gradients

    def mark_scaled(self, loss: torch.Tensor) -> None:
        """A loss scaler gave this loss."""
        self.scaled.add(id(loss))
        self._keep = loss

    def begin_backward(self, scaled: bool, stale: bool) -> None:
        """A backward pass begins, on gradients that a step has used if they are stale."""
        if scaled:
            self.scale = self.current_scale()
        elif not self.backwards:
            self.scale = 1.0
        self.stale = self.stale or stale
        self.backwards += 1

    def unscale(self) -> None:
        """The gradients carry no loss scale any more."""
        self.scale = 1.0

    def end_step(self) -> None:
        """An optimizer has stepped, or the scaler has left its step out."""
        self.backwards, self.stale = 0, False
        self.scaled.clear()
        self.loops.count()
        self.check_time()

    # -- time

    def limit(self, seconds: float) -> None:
        """So many seconds are left."""
        self.deadline = time.process_time() + seconds

    def start_clock(self) -> None:
        """From the first call of a model on the time of the run counts."""
        if self.deadline == math.inf:
            self.limit(self.seconds)

    def check_time(self) -> None:
        """End the run where its time is over."""
        if time.process_time() > self.deadline:
            raise Enough

    def note(self, event: Any) -> None:
        if not self.quiet and event.place:
            self.run.events.append(event)
