"""Where a watch listens: optimizer steps, gradient clipping, loss scalers, first gradients, loads.

Everything is taken back when the watch closes. In the forward pass only the two ends of the whole
model are looked at, and of a compiled one not even these, so that it stays whole.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from torchstone.observe.compat.autograd import is_transformed
from torchstone.observe.training import (
    TRAINING,
    ClipBegins,
    Event,
    StepBegins,
    StepEnds,
    Subscription,
    UnscaleBegins,
)


class Listener(Protocol):
    """What a watch does at these moments."""

    def before_step(self, optimizer: torch.optim.Optimizer) -> None: ...
    def after_step(self, optimizer: torch.optim.Optimizer) -> None: ...
    def before_clip(self, parameters: Any, norms: tuple[float, Tensor]) -> None: ...
    def before_unscale(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None: ...


_listening: list[weakref.ref[Listener]] = []  # a forgotten watch must not stay alive for its hooks
_subscriptions: list[Subscription] = []


def listen(listener: Listener) -> None:
    """Tell this listener of every optimizer step and every clipping from now on."""
    if not _listening:
        kinds = (StepBegins, StepEnds, ClipBegins, UnscaleBegins)
        _subscriptions.append(TRAINING.subscribe(_hand_on, *kinds))
    _listening.append(weakref.ref(listener, lambda _: _prune()))


def unlisten(listener: Listener) -> None:
    """Stop telling it."""
    _listening[:] = [item for item in _listening if item() is not listener]
    _prune()


def _prune() -> None:
    """Forget watches that are gone; the last one takes everything back."""
    _listening[:] = [item for item in _listening if item() is not None]
    if not _listening:
        while _subscriptions:
            _subscriptions.pop().close()


def _hand_on(event: Event) -> None:
    if isinstance(event, StepBegins):
        _tell("before_step", event.optimizer)
    elif isinstance(event, StepEnds):
        _tell("after_step", event.optimizer)
    elif isinstance(event, ClipBegins):
        _tell("before_clip", list(event.parameters), (event.max_norm, event.total_norm))
    elif isinstance(event, UnscaleBegins) and event.scaler.is_enabled():
        _tell("before_unscale", event.scaler, event.optimizer)


_by_model: weakref.WeakKeyDictionary[nn.Module, list[weakref.ref[Any]]] = (
    weakref.WeakKeyDictionary()
)


def follow_model(model: nn.Module, listener: Any, calls: bool) -> Callable[[], None]:
    """Tell the listener what a model is given and gives, and when weights are loaded into it.

    The hooks on the module are plain functions that look their listener up: a copy or a pickle of
    the model carries nothing of the watch, and says nothing to it.
    """
    handles = [model.register_load_state_dict_post_hook(_loaded)]
    if calls:
        handles.append(model.register_forward_pre_hook(_called, with_kwargs=True))
        handles.append(model.register_forward_hook(_answered))
    reference = weakref.ref(listener)
    _by_model.setdefault(model, []).append(reference)
    place = weakref.ref(model)

    def undo() -> None:
        for handle in handles:
            handle.remove()
        alive = place()
        found = _by_model.get(alive) if alive is not None else None
        if found and reference in found:
            found.remove(reference)

    return undo


def _called(model: nn.Module, args: Any, kwargs: Any = None) -> None:
    # a hook that is removed while the module goes through its hooks is called without kwargs
    if not _is_traced():
        for reference in _by_model.get(model, ()):
            if (listener := reference()) is not None:
                listener.model_called(args, kwargs)


def _answered(model: nn.Module, _: Any, output: Any) -> None:
    if not _is_traced():
        for reference in _by_model.get(model, ()):
            if (listener := reference()) is not None:
                listener.model_answered(output)


def _is_traced() -> bool:
    """The model is being compiled, or under a function transform: these are no real values."""
    return bool(torch.compiler.is_compiling() or is_transformed())


def _loaded(model: nn.Module, *_: Any) -> None:
    for reference in _by_model.get(model, ()):
        if (listener := reference()) is not None:
            listener.model_loaded()


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _tell(moment: str, *args: Any) -> None:
    for reference in tuple(_listening):
        listener = reference()
        if listener is not None:
            getattr(listener, moment)(*args)
