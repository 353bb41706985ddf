"""What the listeners of one run share."""

from __future__ import annotations

import math
import time
from typing import Any

import torch

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
        self.keep: Any = None
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

    def start_clock(self) -> None:
        """From the first call of a model on the time of the run counts."""
        if self.deadline == math.inf:
            self.deadline = time.process_time() + self.seconds

    def check_time(self) -> None:
        """End the run where its time is over."""
        if time.process_time() > self.deadline:
            raise Enough

    def note(self, event: Any) -> None:
        if not self.quiet and event.place:
            self.run.events.append(event)
