"""Loss functions and their targets."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from torchstone.conductor.probes.harvest.listeners.state import (
    Hooks,
)
from torchstone.conductor.probes.harvest.listeners.values import (
    is_integer,
)
from torchstone.conductor.probes.harvest.recording import (
    Loss,
)


def watch_losses(hooks: Hooks) -> None:
    functional: Any = nn.functional
    for name in ("cross_entropy", "nll_loss", "mse_loss", "binary_cross_entropy_with_logits",
                 "l1_loss", "smooth_l1_loss", "kl_div"):  # fmt: skip
        setattr(functional, name, _recorded_loss(hooks, name, getattr(functional, name)))


def _recorded_loss(hooks: Hooks, name: str, loss: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(loss)
    def recorded(given: torch.Tensor, target: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if hooks.in_loss or hooks.quiet:
            return loss(given, target, *args, **kwargs)
        if isinstance(given, torch.Tensor):
            dtype = given.dtype if hooks.mode.autocast is None else torch.float32
            hooks.note(Loss(hooks.where.own(2), hooks.run.steps, name, dtype,
                            _is_shifted(hooks, target), hooks.where.stack(2),
                            _counted(target, args, kwargs)))  # fmt: skip
        with hooks.inside_loss():
            value = loss(given, target, *args, **kwargs)
        mean = kwargs.get("reduction", "mean") == "mean" and value.requires_grad
        if mean and value.numel() == 1:
            hooks.loss_values.append(value)
        return value

    return recorded


def _counted(target: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Targets that a mean is taken over."""
    if kwargs.get("reduction", "mean") != "mean" or args or not is_integer(target):
        return 0
    return int((target != kwargs.get("ignore_index", -100)).sum())


def _is_shifted(hooks: Hooks, target: torch.Tensor) -> bool:
    """Whether the targets are the last tokens moved by one."""
    if not hooks.tokens or not is_integer(target):
        return False
    tokens = hooks.tokens[-1]
    del hooks.tokens[:-1]
    rows = tokens.shape[0]
    if target.numel() % rows:
        return False
    flat = target.reshape(rows, -1)
    span = min(flat.shape[1], tokens.shape[1] - 1)
    same = (flat[:, :span] == tokens[:, 1 : span + 1]) | (flat[:, :span] < 0)
    own = flat[:, :span] == tokens[:, :span]
    return span > 2 and bool(same[:, : span - 1].all()) and not bool(own.all())
