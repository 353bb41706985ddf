"""What a run changes outside of itself comes back, also when the way out is interrupted.

An interrupt can come between any two steps of leaving. So every change is written down before it
is made, the way back is taken from those notes, a step that was interrupted is taken again, and
what two interrupts still left behind is put right when the next run begins.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch

from torchstone.observe.compat.modes import (
    dispatch_flags,
    dispatch_modes,
    function_modes,
    pop_dispatch_mode,
    pop_function_mode,
    set_dispatch_flags,
    set_grad_enabled,
)

_ABSENT = object()
_PATIENCE = 3
"""Times that a step is tried: an interrupt passes, an error of its own stays."""
_OPEN: list[Undo] = []


class Undo:
    """The steps back, last first. Each must be safe to take twice."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []

    def later(self, step: Callable[[], object]) -> None:
        """Take this step on the way out."""
        self._steps.append(step)

    def set(self, holder: Any, name: str, value: Any) -> None:
        """Change an attribute until the way out."""
        before = vars(holder).get(name, _ABSENT) if hasattr(holder, "__dict__") else _ABSENT
        self.later(lambda: _put(holder, name, before))
        setattr(holder, name, value)

    def __enter__(self) -> Undo:
        _OPEN.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take every step; what interrupted them is raised afterwards."""
        stopped: BaseException | None = None
        tries = 0
        while self._steps:
            try:
                while self._steps:
                    self._steps[-1]()
                    self._steps.pop()
                    tries = 0
            except BaseException as error:
                stopped = error
                tries += 1
                if tries >= _PATIENCE:
                    self._steps.pop()
                    tries = 0
        while self in _OPEN:
            _OPEN.remove(self)
        if stopped is not None:
            raise stopped


def heal() -> None:
    """Take the steps that interrupted runs left; only for a caller that runs inside no other."""
    for undo in reversed(_OPEN.copy()):
        undo.close()


def keep_modes(undo: Undo) -> None:
    """Grad mode, inference mode and the stacks of modes are afterwards what they are now."""
    graded = torch.is_grad_enabled()
    dispatching = len(dispatch_modes())
    functions = len(function_modes())
    flags = dispatch_flags()

    def back() -> None:
        while len(dispatch_modes()) > dispatching:
            pop_dispatch_mode()
        while len(function_modes()) > functions:
            pop_function_mode()
        set_dispatch_flags(flags)
        set_grad_enabled(graded)

    undo.later(back)


def leave_inference_mode(undo: Undo) -> None:
    """Inference mode is off until the way out: its tensors know no versions and no gradients."""
    if not torch.is_inference_mode_enabled():
        return
    guard = torch.inference_mode(False)

    def back() -> None:
        if not torch.is_inference_mode_enabled():
            guard.__exit__(None, None, None)

    undo.later(back)
    guard.__enter__()


def _put(holder: Any, name: str, value: Any) -> None:
    if value is not _ABSENT:
        setattr(holder, name, value)
    elif name in vars(holder):
        delattr(holder, name)
