"""What is normal for one phase of an optimizer, and for an optimizer as a whole."""

from __future__ import annotations

import math

from torchstone.watch.learn.baselines import SETTLED_AFTER, Baselines
from torchstone.watch.learn.channels import Limits
from torchstone.watch.measure.parameters import WatchedParameters
from torchstone.watch.measure.signal import (
    PHASES_OF_STEPS,
    Jump,
    Phase,
    Signal,
    Values,
    learned,
)
from torchstone.watch.measure.update import Update

_FEWEST = 80  # steps from which what is normal can be told from what is learned
_RATE_MEMORY = 0.02  # of the learning rate that thresholds stretch with


class Learner:
    """The learned signals of one phase: one column for the run, or one for every layer."""

    def __init__(
        self, phase: Phase, layers: tuple[str, ...], warmup: int, tightness: float
    ) -> None:
        self.layers = layers
        self.signals = (*learned(phase, "run"), *learned(phase, "layer"))
        self.spans: list[tuple[Signal, int, int]] = []
        limits: list[Limits] = []
        for signal in self.signals:
            assert signal.limits is not None
            width = 1 if signal.of == "run" else len(layers)
            self.spans.append((signal, len(limits), len(limits) + width))
            limits += [signal.limits.scaled(tightness)] * width
        self.of_run = [
            (signal.name, start) for signal, start, _ in self.spans if signal.of == "run"
        ]
        slow = phase == "sample"  # judged at every tenth update
        settled_after = SETTLED_AFTER if phase == "update" else 0
        self.baselines = Baselines(limits, max(warmup // 10, 8) if slow else warmup, settled_after)


class JudgedOptimizer:
    """What is normal for one optimizer, and what was judged of it last."""

    def __init__(
        self, name: str, watched: WatchedParameters, warmup: int, tightness: float
    ) -> None:
        self.name = name
        self.watched = watched
        self.tightness = tightness
        self.learners: dict[Phase, Learner] = {
            phase: Learner(phase, watched.layers, warmup, tightness) for phase in PHASES_OF_STEPS
        }
        self.memory: dict[str, object] = {}
        """What signals keep from step to step."""
        self.values: dict[str, Values] = {}
        """Of each phase, as they were judged last."""
        self.last_norm = self.last_rate = math.nan
        """Of the update that was judged last."""
        self.stretch = 0.0
        """How far thresholds give way while the learning rate is away from its recent self."""
        self._log_rate: float | None = None

    def take_up(self, update: Update) -> None:
        """The gradients of a step are about to be judged."""
        if update.rate > 0 and math.isfinite(update.rate):
            log_rate = math.log(update.rate)
            usual = log_rate if self._log_rate is None else self._log_rate
            self.stretch = 0.5 * abs(log_rate - usual)
            self._log_rate = usual + _RATE_MEMORY * (log_rate - usual)
        self.last_norm, self.last_rate = update.norm, update.rate
        if update.warm:
            self._end_warmup()

    def _end_warmup(self) -> None:
        """The calls of warm-up are over; with several of them for each step, fewer steps must do.

        For gradients only: what a step does to the weights settles later.
        """
        baselines = self.learners["gradient"].baselines
        if _FEWEST <= baselines.seen < baselines.warmup:
            baselines.end_warmup()

    @property
    def gradient_burst(self) -> float:
        """How far updates may be above their usual size because gradients come in bursts, as those
        of a classifier do when few samples are left to learn from."""
        learner = self.learners["gradient"]
        column = next((start for name, start in learner.of_run if name == "grad_norm"), None)
        return 0.0 if column is None else learner.baselines.burst(column)

    def together(self, name: str) -> Jump | None:
        """How far the layers of a signal of the gradients have jumped at once."""
        learner = self.learners["gradient"]
        start, end = next((a, b) for signal, a, b in learner.spans if signal.name == name)
        found = learner.baselines.together(slice(start, end))
        return None if found is None else Jump(end - start, *found, self.tightness)
