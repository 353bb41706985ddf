"""What is saved in checkpoints."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from torchstone.conductor.probes.harvest.listeners.state import (
    Hooks,
)
from torchstone.conductor.probes.harvest.listeners.values import (
    is_names,
)
from torchstone.conductor.probes.harvest.recording import (
    Recording,
    Save,
)
from torchstone.observe.training import TRAINING, SaveBegins


def watch_saving(hooks: Hooks) -> None:
    def saves(event: SaveBegins) -> None:
        if not hooks.quiet:
            value = event.value
            hooks.note(Save(hooks.where.own(), hooks.run.steps, str(event.file),
                             frozenset(value) if is_names(value) else frozenset(),
                             frozenset(_states(value, hooks.run)), _local_names(hooks)))  # fmt: skip

    TRAINING.subscribe(saves, SaveBegins)


def _local_names(hooks: Hooks) -> tuple[tuple[str, str], ...]:
    """What the saving function calls the optimizer, the scheduler and the scaler."""
    frame = next(hooks.where.own_frames(sys._getframe(2)), None)
    if frame is None:
        return ()
    kinds = (("optimizer", hooks.run.optimizers), ("scheduler", hooks.run.schedulers),
             ("scaler", hooks.run.scalers))  # fmt: skip
    return tuple(
        (kind, name) for name, value in frame.f_locals.items() for kind, known in kinds
        if any(value is item for item in known)
    )  # fmt: skip


def _states(value: Any, run: Recording) -> Iterator[str]:
    """Which kinds of state a saved object holds, by their content."""
    parts = list(value.values()) if isinstance(value, dict) else [value]
    for part in (*parts, value):
        if isinstance(part, nn.Module):
            yield "model"
        elif isinstance(part, torch.optim.Optimizer):
            yield "optimizer"
        elif isinstance(part, dict):
            if "param_groups" in part and "state" in part:
                yield "optimizer"
            elif "_step_count" in part or "last_epoch" in part:
                yield "scheduler"
            elif "growth_factor" in part or (part == {} and run.scalers):
                yield "scaler"
            elif part and all(isinstance(item, torch.Tensor) for item in part.values()):
                yield "model"
        elif isinstance(part, int) and not isinstance(part, bool):
            yield "counter"
