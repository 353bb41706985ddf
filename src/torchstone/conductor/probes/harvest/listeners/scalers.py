"""Loss scaling."""

from __future__ import annotations

from typing import Any

import torch

from torchstone.conductor.probes.harvest.listeners.state import (
    Hooks,
)
from torchstone.conductor.probes.harvest.recording import (
    Scaling,
)


def watch_scalers(hooks: Hooks) -> None:
    kind: Any = torch.amp.grad_scaler.GradScaler
    init, scale, unscale, step, update = (
        kind.__init__, kind.scale, kind.unscale_, kind.step, kind.update,
    )  # fmt: skip

    def recorded_init(scaler: Any, _: str = "cuda", *args: Any, **kwargs: Any) -> None:
        kwargs.pop("device", None)
        init(scaler, "cpu", *args, **kwargs)
        if not hooks.quiet and scaler.is_enabled():
            hooks.run.scalers.append(scaler)
            hooks.run.scaler_places[id(scaler)] = hooks.where.own(2)

    def recorded_scale(scaler: Any, outputs: Any) -> Any:
        result = scale(scaler, outputs)
        if scaler.is_enabled() and isinstance(result, torch.Tensor):
            hooks.scaled.add(id(result))
            hooks.keep = result
        _note_scaling(hooks, "scale", scaler)
        return result

    def recorded_unscale(scaler: Any, optimizer: Any) -> Any:
        result = unscale(scaler, optimizer)
        hooks.scale = 1.0
        _note_scaling(hooks, "unscale_", scaler)
        return result

    def recorded_step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        _note_scaling(hooks, "step", scaler)
        before = hooks.run.steps
        result = step(scaler, optimizer, *args, **kwargs)
        if hooks.run.steps == before:  # skipped: the gradients were not finite
            hooks.backwards, hooks.stale = 0, False
            hooks.scaled.clear()
            hooks.loops.count()
            hooks.check_time()
        return result

    def recorded_update(scaler: Any, *args: Any, **kwargs: Any) -> Any:
        _note_scaling(hooks, "update", scaler)
        return update(scaler, *args, **kwargs)

    kind.__init__, kind.scale, kind.unscale_ = recorded_init, recorded_scale, recorded_unscale
    kind.step, kind.update = recorded_step, recorded_update
    old: Any = torch.cuda.amp.GradScaler
    old.__init__ = lambda scaler, *args, **kwargs: recorded_init(scaler, "cuda", *args, **kwargs)


def _note_scaling(hooks: Hooks, method: str, scaler: Any) -> None:
    if not hooks.quiet:
        hooks.note(Scaling(hooks.where.own(3), hooks.run.steps, method, scaler.is_enabled()))
