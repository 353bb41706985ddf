"""Loss scaling."""

from __future__ import annotations

from typing import Any

import torch

from torchstone.conductor.probes.harvest.listeners.state import Hooks
from torchstone.conductor.probes.harvest.precision import make_scalers_for_host
from torchstone.conductor.probes.harvest.recording import Scaling
from torchstone.observe.training import (
    TRAINING,
    LossScaled,
    ScalerStepBegins,
    ScalerStepEnds,
    ScaleUpdates,
    UnscaleEnds,
)


def watch_scalers(hooks: Hooks) -> None:
    def note(scaler: Any) -> None:
        if not hooks.quiet:
            hooks.run.scalers.append(scaler)
            hooks.run.scaler_places[id(scaler)] = hooks.where.own()

    make_scalers_for_host(note)
    _follow(hooks)


def _follow(hooks: Hooks) -> None:
    begun: list[int] = []

    def scaled(event: LossScaled) -> None:
        if event.scaler.is_enabled() and isinstance(event.result, torch.Tensor):
            hooks.mark_scaled(event.result)
        _note_scaling(hooks, "scale", event.scaler)

    def unscaled(event: UnscaleEnds) -> None:
        hooks.unscale()
        _note_scaling(hooks, "unscale_", event.scaler)

    def step_begins(event: ScalerStepBegins) -> None:
        _note_scaling(hooks, "step", event.scaler)
        begun.append(hooks.run.steps)

    def step_ends(_: ScalerStepEnds) -> None:
        if begun and hooks.run.steps == begun.pop():  # skipped: the gradients were not finite
            hooks.end_step()

    TRAINING.subscribe(scaled, LossScaled)
    TRAINING.subscribe(unscaled, UnscaleEnds)
    TRAINING.subscribe(step_begins, ScalerStepBegins)
    TRAINING.subscribe(step_ends, ScalerStepEnds)
    TRAINING.subscribe(lambda event: _note_scaling(hooks, "update", event.scaler), ScaleUpdates)


def _note_scaling(hooks: Hooks, method: str, scaler: Any) -> None:
    if not hooks.quiet:
        hooks.note(Scaling(hooks.where.own(), hooks.run.steps, method, scaler.is_enabled()))
