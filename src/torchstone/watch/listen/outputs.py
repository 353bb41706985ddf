"""What can be known of a model's outputs, and of the gradient that comes back to them."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchstone.observe.compat.autograd import is_batched
from torchstone.watch.listen.discover import tensors_in
from torchstone.watch.measure.call import ModelOutput
from torchstone.watch.read.tensor_summary import is_readable, summarise_rows

_SAMPLED = 2048
_LOOK_EVERY = 2
_SUMMED = 1 << 16
"""Values up to which one sum at every step costs less than 10 µs."""
_NOTHING = (math.nan, math.nan, math.nan)


class Outputs:
    """Looks at the model's answer at every second step; the other one is taken to be like it."""

    def __init__(self, guard: Callable[[Callable[[], object]], None]) -> None:
        self._guard = guard
        self._steps = 0
        self._kind: tuple[int, ...] = ()
        """Values in the last dimension of what is looked at."""
        self.elsewhere = ""
        """Devices of outputs that are not on the host: looking would mean waiting for them."""
        self._since = 0
        """Answers since the last step."""
        self._arrived: float | None = None
        """The same, for a mean over one output, until the loss of its call is known."""
        self._size = math.nan
        """Norm of the gradient that came to the last of them, estimated from the sample."""
        self._last = _NOTHING
        self._gain = self._slope = math.nan
        self._per_loss = math.nan
        self._weight = math.nan
        """Answers that went into the last step, for the loss scale that it was taken with."""
        self._classes = 0
        self.finite = True
        """Every output since the last step is finite, as far as that is quickly seen."""

    def answered(self, output: Any) -> None:
        """The model has given something; evaluation does not count.

        Only the first answer after a step is looked at: a program that asks for several kinds of
        answers would make one series of them all.
        """
        if not torch.is_grad_enabled():
            return
        self._since += 1
        self.finite = self.finite and _looks_finite(output)
        if self._since > 1 or self._steps % _LOOK_EVERY:
            return
        given = list(tensors_in(output))
        moving = [t for t in given if is_readable(t)]
        if not moving:
            kinds = {t.device.type for t in given if t.is_floating_point()} - {"cpu"}
            self.elsewhere = ", ".join(sorted(kinds))
            return
        tensor = moving[0]
        kind = tuple(tensor.shape[-1:])
        self._kind = self._kind or kind
        if kind != self._kind:
            self._last = _NOTHING
            return
        self._classes = tensor.shape[-1] if tensor.dim() > 1 else 0
        seen = summarise_rows(tensor, _SAMPLED)
        self._last = _NOTHING
        if math.isfinite(seen.squares):  # NaN is neither zero nor below it, and is told elsewhere
            self._last = (seen.scale, seen.zeros / seen.size, seen.negative / seen.size)
        # a leaf would keep the hook; of several outputs none has the whole gradient
        alone = sum(t.requires_grad for t in moving) == 1
        if tensor.grad_fn is not None and alone:
            tensor.register_hook(torch.utils.hooks.unserializable_hook(self._hook()))

    def _hook(self) -> Callable[[Tensor], None]:
        mine = weakref.ref(self)

        def arrives(gradient: Tensor | None) -> None:
            if gradient is None:  # a function of the user's own may give none
                return
            if (outputs := mine()) is not None and not is_batched(gradient):
                outputs._guard(lambda: outputs._arrives(gradient))

        return arrives

    def _arrives(self, gradient: Tensor) -> None:
        if is_readable(gradient):
            size = summarise_rows(gradient, _SAMPLED).scale * math.sqrt(gradient.numel())
            self._size = size if math.isfinite(size) else math.nan
            self._arrived = self._size * math.sqrt(gradient.numel())

    def left_out(self) -> None:
        """The loss scaler has left a step out: its answers belong to no step."""
        self._since, self._size = 0, math.nan
        self.finite = True

    def stepped(self, norm: float, scale: float) -> None:
        """An optimizer has stepped; after several answers no one gradient led to it."""
        if self._since > 1:
            self._gain = math.nan
        elif self._size > 0:
            self._gain = norm * scale / self._size
        self._weight = self._since / scale if scale else math.nan
        self._since, self._size = 0, math.nan
        self.finite = True
        self._steps += 1

    def finish(self, loss: float | None) -> ModelOutput:
        """What was seen last; the loss is that of the call."""
        if self._arrived is not None:
            self._per_loss = self._arrived / abs(loss) if loss else math.nan
            self._arrived = None
        if not math.isnan(self._weight):
            # a mean over more outputs, and a step that takes several answers, have smaller ones
            self._slope = self._per_loss * self._weight
            self._weight = math.nan
        return ModelOutput(*self._last, self._gain, self._slope, self._classes)


def _looks_finite(output: Any) -> bool:
    """By one sum: outputs on a device, and large ones, are not asked."""
    first = next((t for t in tensors_in(output) if is_readable(t)), None)
    if first is None or first.numel() > _SUMMED:
        return True
    return math.isfinite(float(first.detach().sum()))
