"""Hooks on one parameter of an optimizer, which every backward pass reaches.

One hook on one parameter is all that a backward pass is charged for: it sees whether the old
gradient was cleared, whether several passes add up, and which layers are in evaluation mode while
gradients are taken.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from torchstone.observe.compat.autograd import is_batched
from torchstone.observe.compat.layers import BatchNormBase, DropoutBase, NormBase
from torchstone.watch.listen.optimizer_reader import OptimizerReader
from torchstone.watch.measure.call import Backward

_MOST = 64
_LOOK_EVERY = 4
_NEXT_TO_NOTHING = 1e-3
_HABIT = 4  # numbers that change again and again are how this program works


class BackwardHook:
    """The hooks on one parameter of a watched optimizer."""

    def __init__(
        self,
        reader: OptimizerReader,
        models: Sequence[nn.Module],
        guard: Callable[[Callable[[], object]], None],
    ) -> None:
        self._guard = guard
        self._modes = [item for model in models for item in _modules_with_modes(model)]
        self._clean = True
        self._looking = False
        """At this step the gradients are compared with what arrives."""
        self._passes = 0
        """Backward passes since the last step."""
        self._usual_passes = 0
        self._changes = 0
        self._weights: NDArray[np.float32] | None = None
        self._whole: NDArray[np.float32] | None = None
        """The gradient after the last pass."""
        self._lost: bool | None = None
        self._steps = 0
        self._arrived: NDArray[np.float32] | None = None
        self._backwards = 0
        self._seen = 0
        self._stale = ""
        self._compared: tuple[int, bool | None] = (0, None)
        self._in_eval: tuple[str, ...] = ()
        kind = BatchNormBase
        norms = [(name, module) for name, module in self._modes if isinstance(module, kind)]
        self._norms = norms[:1] + norms[-1:] if len(norms) > 1 else norms  # two stand for all
        self._statistics: dict[str, tuple[float, ...]] = {}
        self._tracked: dict[str, tuple[float | None, int]] = {}
        watched = reader.watched
        present = reader.reading.present if reader.reading is not None else ()
        there = [i for i, found in enumerate(present) if found]
        # the smallest is the cheapest to look at
        place = min(there, key=lambda i: int(watched.sizes[i]), default=None)
        self._handle: Any = None
        if place is not None and watched.parameters[place].requires_grad:
            self._name = watched.names[place]
            self._parameter = watched.parameters[place]
            mine = weakref.ref(self)

            def arrives(gradient: Tensor | None) -> None:
                backward_hook = mine()
                if gradient is None or backward_hook is None or not backward_hook._looking:
                    return
                if not torch.compiler.is_compiling() and not is_batched(gradient):
                    backward_hook._guard(lambda: backward_hook._arrives(gradient))

            def added(parameter: Tensor) -> None:
                if (backward_hook := mine()) is not None and not torch.compiler.is_compiling():
                    backward_hook._guard(lambda: backward_hook._added(parameter))

            handles = (
                self._parameter.register_hook(torch.utils.hooks.unserializable_hook(arrives)),
                self._parameter.register_post_accumulate_grad_hook(added),
            )
            self._handle = handles

    def _arrives(self, gradient: Tensor) -> None:
        self._arrived = _few(gradient)

    def _added(self, parameter: Tensor) -> None:
        """A backward pass has added to the gradient; `autograd.grad` never comes here."""
        self._backwards += 1
        self._passes += 1
        if self._looking and parameter.grad is not None:
            self._compare(parameter, _few(parameter.grad))
        elif self._looking:
            self._clean = True
        self._in_eval = tuple(name for name, module in self._modes if not module.training)
        self._statistics = {
            name: (*mean[:4].tolist(), *spread[:4].tolist())
            for name, module in self._norms
            if module.training and (mean := module.running_mean) is not None
            and (spread := module.running_var) is not None and mean.device.type == "cpu"
        }  # fmt: skip
        self._tracked = {
            name: (module.momentum, int(module.num_batches_tracked))
            for name, module in self._norms
            if name in self._statistics and module.num_batches_tracked is not None
        }

    def _compare(self, parameter: Tensor, whole: NDArray[np.float32] | None) -> None:
        """The gradients must have begun from nothing, and later passes must add to them."""
        self._clean = self._clean or _is_the_same(self._arrived, whole)
        self._whole = whole
        weights = _few(parameter)
        if self._passes == 1 or weights is None or self._weights is None:
            self._weights = weights
        elif whole is not None and self._arrived is not None and whole.any():
            older = np.abs(whole - self._arrived).max()
            lost = bool(older < _NEXT_TO_NOTHING * np.abs(whole).max())
            # a method that looks from another place (SAM) throws its first gradient away
            self._lost = lost if np.array_equal(self._weights, weights) else None

    def before_step(self) -> None:
        """An optimizer steps on gradients: were they begun from nothing?"""
        if self._handle is not None and self._backwards > self._seen and not self._clean:
            self._stale = self._name
        if self._looking and self._passes > 1:
            gradient = self._parameter.grad
            same = gradient is not None and _is_the_same(self._whole, _few(gradient))
            # else the program has put the passes together itself
            self._compared = (self._passes, self._lost if same else None)

    def has_new_passes(self) -> bool:
        """Another number of backward passes belongs to each step from now on."""
        usual, self._usual_passes = self._usual_passes, self._passes
        if not usual or not self._passes or usual == self._passes or self._changes == _HABIT:
            return False
        self._changes += 1
        return True

    def stepped(self) -> None:
        """The gradients are used up; wrong code shows at every step."""
        self._steps += 1
        self._looking = self._steps % _LOOK_EVERY == 0
        self._clean = not self._looking
        self._passes, self._lost = 0, None
        self._seen = self._backwards

    def left_out(self) -> None:
        """The loss scaler has left a step out: its passes belong to no step."""
        self._passes, self._lost = 0, None

    def abandon(self) -> None:
        """The call is dropped: it raised an exception."""
        self.left_out()
        self._stale, self._compared = "", (0, None)

    def report(self) -> Backward:
        """What was seen during this call."""
        found = Backward(
            self._backwards, self._stale, *self._compared, self._in_eval, self._statistics, self._tracked
        )  # fmt: skip
        self._backwards = self._seen = 0
        self._stale, self._compared = "", (0, None)
        return found

    def remove(self) -> None:
        for handle in self._handle or ():
            handle.remove()


def _few(gradient: Tensor) -> NDArray[np.float32] | None:
    """Some values, where they can be had without waiting for a device."""
    known = type(gradient) in (Tensor, nn.Parameter)
    if not known or gradient.layout != torch.strided or not gradient.is_cpu:
        return None
    if gradient.is_complex():
        return None
    few = gradient.detach().reshape(-1)[:_MOST]
    return (few if few.dtype == torch.float32 else few.float()).numpy().copy()


def _is_the_same(new: NDArray[np.float32] | None, whole: NDArray[np.float32] | None) -> bool:
    """The gradient is what has just arrived, times a constant: nothing older is in it."""
    if new is None or whole is None or len(new) != len(whole):
        return True
    if np.array_equal(new, whole):
        return True
    size = np.abs(new)
    most = size.max(initial=0)
    if most == 0 or not np.isfinite(size).all():
        return True
    large = size > 0.1 * most
    ratio = whole[large] / new[large]
    return bool(np.abs(ratio - ratio[0]).max() <= 1e-3 * abs(ratio[0])) and (
        len(ratio) > 1 or bool(np.abs(ratio - 1).max() < 1e-3)
    )


def _modules_with_modes(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Modules that do something else in evaluation: batch norm and dropout, in all their forms."""
    kinds = (
        NormBase, DropoutBase, nn.RReLU,
        nn.MultiheadAttention, nn.modules.rnn.RNNBase,
    )  # fmt: skip
    return [
        (name or type(module).__name__, module)
        for name, module in model.named_modules()
        if isinstance(module, kinds) and _differs_in_eval(module)
    ]


def _differs_in_eval(module: nn.Module) -> bool:
    if isinstance(module, DropoutBase):
        return module.p > 0
    if isinstance(module, (nn.MultiheadAttention, nn.modules.rnn.RNNBase)):
        return bool(module.dropout)
    return bool(getattr(module, "track_running_stats", True))
