"""What can be known of a model's outputs, and of the gradient that comes back to them."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchstone.watch.beat import Call
from torchstone.watch.discover import tensors_in

_SAMPLED = 2048
_LOOK_EVERY = 2


class Outputs:
    """Looks at every second answer of the model; the other one is taken to be like it."""

    def __init__(self, guard: Callable[[Callable[[], object]], None]) -> None:
        self._guard = guard
        self._answers = 0
        self._since = 0
        """Answers since the last step."""
        self._size = math.nan
        """Norm of the gradient that came to the last of them, estimated from the sample."""
        self._last = (math.nan, math.nan, math.nan)
        self._gain = math.nan
        self._classes = 0

    def answered(self, output: Any) -> None:
        """The model has given something; evaluation does not count."""
        if not torch.is_grad_enabled():
            return
        self._answers += 1
        self._since += 1
        if self._answers % _LOOK_EVERY and self._answers > 1:
            return
        tensor = next((t for t in tensors_in(output) if _is_readable(t)), None)
        if tensor is None:
            return
        values = _spread(tensor)
        count = len(values)
        self._classes = tensor.shape[-1] if tensor.dim() > 1 else 0
        self._last = (
            math.sqrt(float(values @ values) / count),
            1 - int(np.count_nonzero(values)) / count,
            int(np.count_nonzero(values < 0)) / count,
        )
        if tensor.requires_grad:
            mine = weakref.ref(self)

            def arrives(gradient: Tensor) -> None:
                if (outputs := mine()) is not None:
                    outputs._guard(lambda: outputs._arrives(gradient))

            tensor.register_hook(arrives)

    def _arrives(self, gradient: Tensor) -> None:
        if _is_readable(gradient):
            values = _spread(gradient)
            self._size = math.sqrt(float(values @ values) / len(values) * gradient.numel())

    def stepped(self, norm: float, scale: float) -> None:
        """An optimizer has stepped; after several answers no one gradient led to it."""
        if self._since > 1:
            self._gain = math.nan
        elif self._size > 0:
            self._gain = norm * scale / self._size
        self._since, self._size = 0, math.nan

    def fill(self, call: Call) -> None:
        """What was seen last."""
        call.output_scale, call.output_zeros, call.output_sign = self._last
        call.backward_gain = self._gain
        call.classes = self._classes


def _is_readable(tensor: Tensor) -> bool:
    return (
        tensor.numel() > 1 and tensor.dtype == torch.float32 and tensor.layout == torch.strided
        and tensor.is_cpu and not tensor.is_nested
    )  # fmt: skip


def _spread(tensor: Tensor) -> NDArray[np.float32]:
    """Values spread over a tensor; an odd distance meets every class of a power of two."""
    values = tensor.detach().reshape(-1).numpy()
    step = max(1, len(values) // _SAMPLED) | 1
    return np.asarray(values[::step])
