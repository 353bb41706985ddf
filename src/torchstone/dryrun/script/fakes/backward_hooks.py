"""Hooks that torch calls in a backward pass on the pretend device, and what they raise.

torch leaves the pass through the device's guard, which is written in Python; with an exception under way
that call fails, and the process is aborted. So an exception of a hook waits until the pass is over.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import Session

_BEFORE, _AFTER = _TENSOR_HOOKS = ("register_hook", "register_post_accumulate_grad_hook")
_MODULE_HOOKS = ("register_full_backward_hook", "register_full_backward_pre_hook")


def hold_back_errors(session: Session) -> None:
    """From now on what a backward hook raises is raised by the call that started the backward pass."""
    for holder, names in ((torch.Tensor, _TENSOR_HOOKS), (torch.nn.Module, _MODULE_HOOKS)):
        for name in names:
            put(holder, name, _registers_guarded(session, getattr(holder, name)))
    _guard_saved_tensors(session)


def _registers_guarded(session: Session, register: Any) -> Any:
    @functools.wraps(register)
    def registered(owner: Any, hook: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return register(owner, _guarded(session, checked(hook)), *args, **kwargs)

    def checked(hook: Callable[..., Any]) -> Callable[..., Any]:
        """torch refuses other results, in the middle of the pass."""

        @functools.wraps(hook, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            result = hook(*args, **kwargs)
            if register.__name__ == _AFTER and result is not None:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")
            if register.__name__ == _BEFORE and not isinstance(result, torch.Tensor | None):
                raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
            return result

        return call

    return registered


def _guarded(session: Session, hook: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(hook, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if session.held_back is not None:  # the pass would be over by now
            return None
        try:
            return hook(*args, **kwargs)
        except BaseException as error:
            session.hold_back(error)
            return None

    return call


def _guard_saved_tensors(session: Session) -> None:
    """Activation checkpointing computes again when a saved tensor is asked for."""
    original = saved_tensors_hooks.__init__

    def init(hooks: Any, pack_hook: Any, unpack_hook: Any) -> None:
        def pack(tensor: torch.Tensor) -> Any:
            return pack_hook(tensor), (tensor.shape, tensor.dtype, tensor.device)

        def unpack(held: Any) -> torch.Tensor:
            made = _guarded(session, unpack_hook)(held[0])
            return made if made is not None else _blank(session, *held[1])

        original(hooks, pack, unpack)

    put(saved_tensors_hooks, "__init__", init)


def _blank(
    session: Session, shape: torch.Size, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    with session.mode:
        return torch.empty(shape, dtype=dtype, device=device)
