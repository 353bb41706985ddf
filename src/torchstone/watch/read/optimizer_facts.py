"""What an optimizer says of itself: learning rates, settings, how old its state is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

SETTINGS = (
    "momentum", "dampening", "nesterov", "betas", "eps", "weight_decay", "maximize", "alpha",
)  # fmt: skip
"""What an optimizer's group says beside the learning rate."""


def group_rates(optimizer: torch.optim.Optimizer) -> list[float]:
    """The learning rate of every group; NaN where it is on a device, and is not read."""
    rates = [group.get("lr", 0.0) for group in optimizer.param_groups]
    return [
        float(rate) if not isinstance(rate, Tensor) or rate.is_cpu else math.nan for rate in rates
    ]


def largest_rate(rates: Sequence[float]) -> float:
    """The largest known learning rate."""
    return max((rate for rate in rates if rate == rate), default=0.0)


def base_rate(optimizer: torch.optim.Optimizer) -> float:
    """The largest rate that a schedule of torch starts from; 0 without one."""
    known = [group.get("initial_lr") for group in optimizer.param_groups]
    numbers = [rate for rate in known if isinstance(rate, (int, float))]
    numbers += [
        float(rate)
        for rate in known
        if isinstance(rate, Tensor) and rate.is_cpu and rate.numel() == 1
    ]
    return max(numbers, default=0.0)


def settings_of(optimizer: torch.optim.Optimizer) -> list[tuple[object, ...]]:
    """What the groups say beside the learning rate."""
    return [tuple(map(group.get, SETTINGS)) for group in optimizer.param_groups]


class Age:
    """Steps that an optimizer has counted."""

    def __init__(self, optimizer: torch.optim.Optimizer, parameters: Sequence[Tensor]) -> None:
        self._optimizer, self._parameters = optimizer, parameters
        self._oldest: Tensor | None = None

    def read(self) -> float:
        """-1 without any state, 0 where the optimizer does not count."""
        states = self._optimizer.state
        if self._oldest is None:
            self._oldest = next((p for p in self._parameters if states.get(p)), None)
        state = states.get(self._oldest) if self._oldest is not None else None
        if not state:
            return -1.0
        step = state.get("step", 0)
        if isinstance(step, Tensor):
            return float(step) if step.is_cpu and step.numel() == 1 else 0.0
        return float(step) if isinstance(step, (int, float)) else 0.0
