"""What SGD with momentum is about to do to each layer, from samples."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from torchstone.watch.measure.parameters import WatchedParameters

_REMEMBERED = 60  # steps after which momentum has forgotten what came before


class Momentum:
    """Follows the sums of one optimizer.

    The samples go through the same sums as the real values, so the step that follows is in
    proportion, whatever the gradients do.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, watched: WatchedParameters) -> None:
        self._optimizer, self._watched = optimizer, watched
        self._pushed: NDArray[np.float32] | None = None
        self._pushed_at = -1
        self._pushes = 0
        self._proportional = False

    def forget(self) -> None:
        """What was loaded brought a momentum of its own."""
        self._pushed = None

    def push(
        self, gradients: NDArray[np.float32], weights: NDArray[np.float32], factor: float, at: int
    ) -> NDArray[np.float64] | None:
        """The size of the step of each layer at this update; None for other optimizers, NaN until
        the sums reach back far enough."""
        if at == 0:
            kinds = {name for state in self._optimizer.state.values() for name in state}
            self._proportional = kinds <= {"momentum_buffer"}
        if not self._proportional:
            return None
        group = self._optimizer.param_groups[0]
        push = gradients * np.float32(factor)
        if decay := float(group.get("weight_decay") or 0.0):
            push += np.float32(decay) * weights
        if self._pushed is None or self._pushed_at != at - 1:
            self._pushed, self._pushes = np.zeros_like(push), 0
        keep = np.float32(group.get("momentum") or 0.0)
        self._pushed = keep * self._pushed + push
        step = push + keep * self._pushed if group.get("nesterov") else self._pushed
        self._pushed_at, self._pushes = at, self._pushes + 1
        if self._pushes != at + 1 and self._pushes < _REMEMBERED:
            return np.full(len(self._watched.layers), np.nan)
        return np.sqrt(self._watched.by_layer((step.astype(np.float64) ** 2).sum(1)))
