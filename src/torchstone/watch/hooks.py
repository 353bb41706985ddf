"""Where a watch listens: optimizer steps, gradient clipping, loss scalers, first gradients, loads.

Everything is taken back when the watch closes. Nothing is attached to modules in the forward
pass, so that compiled models stay whole.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.utils import clip_grad
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)


class Listener(Protocol):
    """What a watch does at these moments."""

    def before_step(self, optimizer: torch.optim.Optimizer) -> None: ...
    def after_step(self, optimizer: torch.optim.Optimizer) -> None: ...
    def before_clip(self, parameters: Any) -> None: ...
    def before_unscale(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None: ...


_listening: list[weakref.ref[Listener]] = []  # a forgotten watch must not stay alive for its hooks
_undo: list[Callable[[], None]] = []


def listen(listener: Listener) -> None:
    """Tell this listener of every optimizer step and every clipping from now on."""
    if not _listening:
        _install()
    _listening.append(weakref.ref(listener))


def unlisten(listener: Listener) -> None:
    """Stop telling it; the last one takes everything back."""
    _listening[:] = [item for item in _listening if item() not in (None, listener)]
    if not _listening:
        while _undo:
            _undo.pop()()


def _install() -> None:
    before = register_optimizer_step_pre_hook(lambda optimizer, *_: _tell("before_step", optimizer))
    after = register_optimizer_step_post_hook(lambda optimizer, *_: _tell("after_step", optimizer))
    _undo.extend((before.remove, after.remove))
    # clip_grad_norm_ looks its second half up at each call, however the user imported it
    original = clip_grad._clip_grads_with_norm_

    @functools.wraps(original)
    def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(parameters, Tensor):
            parameters = list(parameters)
        _tell("before_clip", parameters)
        return original(parameters, *args, **kwargs)

    clip_grad._clip_grads_with_norm_ = clip
    _undo.append(lambda: setattr(clip_grad, "_clip_grads_with_norm_", original))


def _tell(moment: str, *args: Any) -> None:
    for reference in tuple(_listening):
        listener = reference()
        if listener is not None:
            getattr(listener, moment)(*args)


def on_unscale(scaler: Any, listener: Listener) -> Callable[[], None]:
    """Tell the listener before a loss scaler divides the gradients; gives the way back."""
    original = scaler.unscale_

    def unscale(optimizer: torch.optim.Optimizer) -> Any:
        listener.before_unscale(scaler, optimizer)
        return original(optimizer)

    scaler.unscale_ = unscale

    def undo() -> None:
        if vars(scaler).get("unscale_") is unscale:
            del scaler.unscale_

    return undo
