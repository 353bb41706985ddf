"""What a training loop does: optimizer steps, clipping, loss scaling, cleared gradients, schedules.

Each function of torch is replaced once, when the first subscriber asks for its event, and put back
when the last one has gone. Events are small frozen values; subscribers get them in the order in which
they subscribed. What a subscriber raises goes to the program.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.data import DataLoader

from torchstone.observe.compat.optimizers import CLIPPING_STEP
from torchstone.observe.undo import Undo


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a training loop does."""


@dataclass(frozen=True, slots=True)
class OptimizerMade(Event):
    """An optimizer was made."""

    optimizer: torch.optim.Optimizer


@dataclass(frozen=True, slots=True)
class StepBegins(Event):
    """An optimizer is about to change its parameters."""

    optimizer: torch.optim.Optimizer


@dataclass(frozen=True, slots=True)
class StepEnds(Event):
    """An optimizer has changed its parameters."""

    optimizer: torch.optim.Optimizer


@dataclass(frozen=True, slots=True)
class GradientsCleared(Event):
    """`zero_grad` of an optimizer or a module has been called."""

    holder: torch.optim.Optimizer | nn.Module


@dataclass(frozen=True, slots=True)
class BackwardBegins(Event):
    """A backward pass is about to run."""

    roots: Any
    """What it starts from: a tensor, or several."""


@dataclass(frozen=True, slots=True)
class BackwardEnds(Event):
    """A backward pass has run."""

    roots: Any


@dataclass(frozen=True, slots=True)
class ClipBegins(Event):
    """Gradients are about to be cut down to a norm; their own is known."""

    parameters: tuple[torch.Tensor, ...]
    max_norm: float
    total_norm: torch.Tensor


@dataclass(frozen=True, slots=True)
class ClipEnds(Event):
    """Gradients have been cut down."""

    parameters: tuple[torch.Tensor, ...]
    max_norm: float


@dataclass(frozen=True, slots=True)
class LossScaled(Event):
    """A loss scaler has multiplied a loss."""

    scaler: Any
    result: Any


@dataclass(frozen=True, slots=True)
class UnscaleBegins(Event):
    """A loss scaler is about to divide the gradients of an optimizer."""

    scaler: Any
    optimizer: torch.optim.Optimizer


@dataclass(frozen=True, slots=True)
class UnscaleEnds(Event):
    """A loss scaler has divided the gradients of an optimizer."""

    scaler: Any
    optimizer: torch.optim.Optimizer


@dataclass(frozen=True, slots=True)
class ScalerStepBegins(Event):
    """A loss scaler is asked to step an optimizer."""

    scaler: Any
    optimizer: torch.optim.Optimizer


@dataclass(frozen=True, slots=True)
class ScalerStepEnds(Event):
    """A loss scaler has stepped an optimizer, or left the step out."""

    scaler: Any
    optimizer: torch.optim.Optimizer


@dataclass(frozen=True, slots=True)
class ScaleUpdates(Event):
    """A loss scaler is about to choose its next scale."""

    scaler: Any


@dataclass(frozen=True, slots=True)
class SchedulerMade(Event):
    """A schedule of the learning rate was made."""

    scheduler: Any


@dataclass(frozen=True, slots=True)
class SchedulerSteps(Event):
    """A schedule is about to move on; not the step that its own making takes."""

    scheduler: Any


@dataclass(frozen=True, slots=True)
class SaveBegins(Event):
    """Something is about to be saved."""

    value: Any
    file: Any


@dataclass(frozen=True, slots=True)
class StateLoads(Event):
    """A module is about to be given other weights."""

    module: nn.Module
    state: Any


@dataclass(frozen=True, slots=True)
class LoaderMade(Event):
    """A loader was made."""

    loader: DataLoader[Any]


Handler = Callable[[Any], None]


class Subscription:
    """Hands events to one subscriber until it is closed."""

    def __init__(
        self, training: Training, handler: Handler, kinds: tuple[type[Event], ...]
    ) -> None:
        self._training, self.handler, self.kinds = training, handler, kinds

    def close(self) -> None:
        """Hand it no more events; safe to call twice."""
        self._training._remove(self)


class Training:
    """Reports what a training loop does to whoever subscribes."""

    def __init__(self) -> None:
        self._handlers: dict[type[Event], tuple[Subscription, ...]] = {}
        self._undo: dict[Callable[[Training, Undo], None], Undo] = {}

    def subscribe(
        self, handler: Handler, *kinds: type[Event], before_others: bool = False
    ) -> Subscription:
        """Hand events of these kinds to a function from now on, after those that subscribed earlier unless it
        is to come first: it may end by an exception what the others should not see."""
        made = Subscription(self, handler, kinds)
        for kind in kinds:
            known = self._handlers.get(kind, ())
            self._handlers[kind] = (made, *known) if before_others else (*known, made)
            install = _INSTALLED_BY[kind]
            if install not in self._undo:
                undo = self._undo[install] = Undo()
                install(self, undo)
        return made

    def _remove(self, gone: Subscription) -> None:
        for kind in gone.kinds:
            left = tuple(item for item in self._handlers.get(kind, ()) if item is not gone)
            self._handlers[kind] = left
            install = _INSTALLED_BY[kind]
            others = (other for other, by in _INSTALLED_BY.items() if by is install)
            if install in self._undo and not any(self._handlers.get(other) for other in others):
                self._undo.pop(install).close()

    def report(self, event: Event) -> None:
        """Hand an event to its subscribers."""
        for subscription in self._handlers.get(type(event), ()):
            subscription.handler(event)

    def wants(self, kind: type[Event]) -> bool:
        """Whether anyone listens to an event: some are worth making only then."""
        return bool(self._handlers.get(kind))


def _follow_steps(training: Training, undo: Undo) -> None:
    def before(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        training.report(StepBegins(optimizer))

    def after(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        training.report(StepEnds(optimizer))

    undo.later(register_optimizer_step_pre_hook(before).remove)
    undo.later(register_optimizer_step_post_hook(after).remove)


def _follow_making(training: Training, undo: Undo) -> None:
    init = torch.optim.Optimizer.__init__

    @functools.wraps(init)
    def made(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        init(optimizer, *args, **kwargs)
        training.report(OptimizerMade(optimizer))

    undo.set(torch.optim.Optimizer, "__init__", made)


def _follow_clearing(training: Training, undo: Undo) -> None:
    for kind in (torch.optim.Optimizer, nn.Module):
        undo.set(kind, "zero_grad", _then(kind.zero_grad, training, GradientsCleared))


def _then(original: Any, training: Training, event: Any) -> Any:
    @functools.wraps(original)
    def method(holder: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(holder, *args, **kwargs)
        training.report(event(holder))
        return result

    return method


def _follow_backward(training: Training, undo: Undo) -> None:
    original = torch.autograd.backward  # Tensor.backward looks it up at each call

    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        training.report(BackwardBegins(tensors))
        original(tensors, *args, **kwargs)
        training.report(BackwardEnds(tensors))

    undo.set(torch.autograd, "backward", backward)


def _follow_clipping(training: Training, undo: Undo) -> None:
    # clip_grad_norm_ looks its second half up at each call, however the user imported it
    original = getattr(*CLIPPING_STEP)

    @functools.wraps(original)
    def clip(
        parameters: Any, max_norm: float, total_norm: torch.Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        several = not isinstance(parameters, torch.Tensor)
        items = tuple(parameters) if several else (parameters,)
        training.report(ClipBegins(items, max_norm, total_norm))
        given = list(items) if several else parameters
        result = original(given, max_norm, total_norm, *args, **kwargs)
        training.report(ClipEnds(items, max_norm))
        return result

    undo.set(*CLIPPING_STEP, clip)


def scaler_kinds() -> list[Any]:
    """Loss scalers that divide gradients themselves; the sharded one only where it is in use."""
    sharded = sys.modules.get("torch.distributed.fsdp.sharded_grad_scaler")
    return [torch.amp.GradScaler] + ([sharded.ShardedGradScaler] if sharded else [])


def _follow_scalers(training: Training, undo: Undo) -> None:
    for kind in scaler_kinds():
        for name, make in (("scale", _scale), ("unscale_", _unscale), ("step", _step)):
            if name in vars(kind):
                undo.set(kind, name, make(getattr(kind, name), training))
        if "update" in vars(kind):
            undo.set(kind, "update", _first(kind.update, training, ScaleUpdates))


def _scale(original: Any, training: Training) -> Any:
    @functools.wraps(original)
    def scale(scaler: Any, outputs: Any) -> Any:
        result = original(scaler, outputs)
        training.report(LossScaled(scaler, result))
        return result

    return scale


def _unscale(original: Any, training: Training) -> Any:
    @functools.wraps(original)
    def unscale(scaler: Any, optimizer: torch.optim.Optimizer) -> Any:
        training.report(UnscaleBegins(scaler, optimizer))
        result = original(scaler, optimizer)
        training.report(UnscaleEnds(scaler, optimizer))
        return result

    return unscale


def _step(original: Any, training: Training) -> Any:
    @functools.wraps(original)
    def step(scaler: Any, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
        training.report(ScalerStepBegins(scaler, optimizer))
        result = original(scaler, optimizer, *args, **kwargs)
        training.report(ScalerStepEnds(scaler, optimizer))
        return result

    return step


def _first(original: Any, training: Training, event: Any) -> Any:
    @functools.wraps(original)
    def method(holder: Any, *args: Any, **kwargs: Any) -> Any:
        training.report(event(holder))
        return original(holder, *args, **kwargs)

    return method


def _follow_schedules(training: Training, undo: Undo) -> None:
    base = torch.optim.lr_scheduler.LRScheduler
    init = base.__init__
    making: list[object] = []

    @functools.wraps(init)
    def made(scheduler: Any, *args: Any, **kwargs: Any) -> None:
        making.append(scheduler)
        try:
            init(scheduler, *args, **kwargs)
        finally:
            making.pop()
        training.report(SchedulerMade(scheduler))

    def followed(original: Any) -> Any:
        @functools.wraps(original)
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if not making:
                training.report(SchedulerSteps(scheduler))
            return original(scheduler, *args, **kwargs)

        return step

    undo.set(base, "__init__", made)
    several = torch.optim.lr_scheduler.SequentialLR  # which does not call what it is derived from
    undo.set(several, "__init__", _then(several.__init__, training, SchedulerMade))
    for kind in vars(torch.optim.lr_scheduler).values():
        if isinstance(kind, type) and issubclass(kind, base) and "step" in vars(kind):
            undo.set(kind, "step", followed(kind.step))


def _follow_saving(training: Training, undo: Undo) -> None:
    original = torch.save

    @functools.wraps(original)
    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        training.report(SaveBegins(obj, f))
        return original(obj, f, *args, **kwargs)

    undo.set(torch, "save", save)


def _follow_loading(training: Training, undo: Undo) -> None:
    original = nn.Module.load_state_dict

    @functools.wraps(original)
    def load(module: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        training.report(StateLoads(module, state_dict))
        return original(module, state_dict, *args, **kwargs)

    undo.set(nn.Module, "load_state_dict", load)


def _follow_loaders(training: Training, undo: Undo) -> None:
    undo.set(DataLoader, "__init__", _then(DataLoader.__init__, training, LoaderMade))


_INSTALLED_BY: dict[type[Event], Callable[[Training, Undo], None]] = {
    OptimizerMade: _follow_making,
    StepBegins: _follow_steps,
    StepEnds: _follow_steps,
    GradientsCleared: _follow_clearing,
    BackwardBegins: _follow_backward,
    BackwardEnds: _follow_backward,
    ClipBegins: _follow_clipping,
    ClipEnds: _follow_clipping,
    LossScaled: _follow_scalers,
    UnscaleBegins: _follow_scalers,
    UnscaleEnds: _follow_scalers,
    ScalerStepBegins: _follow_scalers,
    ScalerStepEnds: _follow_scalers,
    ScaleUpdates: _follow_scalers,
    SchedulerMade: _follow_schedules,
    SchedulerSteps: _follow_schedules,
    SaveBegins: _follow_saving,
    StateLoads: _follow_loading,
    LoaderMade: _follow_loaders,
}
"""What replaces the functions of torch that an event comes from."""

TRAINING = Training()
"""Of this process."""
