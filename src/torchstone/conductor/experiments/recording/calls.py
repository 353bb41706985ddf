"""Calls of the project's own functions, with copies of their arguments: each can be made again."""

from __future__ import annotations

import gc
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from torchstone.conductor.experiments.recording.copies import copy_arguments
from torchstone.core.place import Place

_KEPT = (0, 3)
"""Which calls of a function are kept: the first, and one after things have begun to move."""
_MOST_CALLS = 160
_MOST_BYTES = 256 << 20
_GENERATING = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


_FUNCTIONS: dict[int, types.FunctionType] = {}
"""Functions by the identity of their code, in the process of one experiment."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a function of the project, as it was made."""

    code: types.CodeType
    place: Place
    """The line of its `def`."""
    number: int
    arguments: Mapping[str, Any]
    training_step: int
    grad: bool
    """Whether gradients were recorded: a decorator may have switched them off."""

    @property
    def name(self) -> str:
        return self.code.co_qualname.replace("<locals>.", "")

    def function(self) -> Callable[..., Any] | None:
        """The function itself; None where it is gone. The search goes through everything that is alive, so
        that it is made once for each code."""
        known = _FUNCTIONS.get(id(self.code))
        if known is not None:
            return known
        found = [
            item
            for item in gc.get_referrers(self.code)
            if isinstance(item, types.FunctionType) and item.__code__ is self.code
        ]
        if found:
            _FUNCTIONS[id(self.code)] = found[0]
        return found[0] if found else None

    def copy(self) -> Mapping[str, Any] | None:
        return copy_arguments(dict(self.arguments))

    def again(self, arguments: Mapping[str, Any], seed: int = 0) -> Any:
        """Make the call with these arguments and the same random numbers."""
        function = self.function()
        if function is None:
            raise LookupError(self.name)
        positional, named = _as_passed(self.code, arguments)
        torch.manual_seed(seed)
        with torch.set_grad_enabled(self.grad):
            return function(*positional, **named)


def _as_passed(code: types.CodeType, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    names = code.co_varnames
    plain = names[: code.co_argcount]
    keywords = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    place = code.co_argcount + code.co_kwonlyargcount
    positional = [given[name] for name in plain]
    if code.co_flags & inspect.CO_VARARGS:
        positional += list(given.get(names[place], ()))
        place += 1
    named = {name: given[name] for name in keywords}
    if code.co_flags & inspect.CO_VARKEYWORDS:
        named |= dict(given.get(names[place], {}))
    return positional, named


def argument_names(code: types.CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[:count]


@dataclass(slots=True)
class CallRecorder:
    """Sees every call of a function below one folder while it is on."""

    root: Path
    calls: list[Call] = field(default_factory=list)
    step: int = 0
    _counts: dict[int, int] = field(default_factory=dict)
    """By the identity of the code: two functions with the same text are equal as code objects."""
    _codes: list[types.CodeType] = field(default_factory=list)
    """Kept alive, so that no identity is used twice."""
    _busy: bool = False

    def start(self) -> None:
        sys.setprofile(self._see)

    def stop(self) -> None:
        sys.setprofile(None)

    def _see(self, frame: types.FrameType, event: str, _: Any) -> None:
        if event != "call" or self._busy:
            return
        code = frame.f_code
        count = self._counts.get(id(code))
        if count is None:
            count = 0 if self._is_kept(code) else -1
            self._codes.append(code)
        if count < 0:
            return
        self._counts[id(code)] = count + 1
        if count in _KEPT and len(self.calls) < _MOST_CALLS:
            self._keep(frame, code, count)
        elif count > _KEPT[-1]:
            self._counts[id(code)] = -1

    def _is_kept(self, code: types.CodeType) -> bool:
        inside = code.co_filename.startswith(f"{self.root}/")
        function = bool(code.co_flags & inspect.CO_NEWLOCALS) and not code.co_name.startswith("<")
        special = code.co_name.startswith("__") and code.co_name != "__call__"
        return inside and function and not special and not code.co_flags & _GENERATING

    def _keep(self, frame: types.FrameType, code: types.CodeType, count: int) -> None:
        self._busy = True
        try:
            names = argument_names(code)
            given = {name: value for name, value in frame.f_locals.items() if name in names}
            copied = copy_arguments(given)
        finally:
            self._busy = False
        if copied is not None and len(copied) == len(names):
            path = code.co_filename.removeprefix(f"{self.root}/")
            place = Place(path, code.co_firstlineno, code.co_qualname.replace("<locals>.", ""))
            grad = torch.is_grad_enabled()
            self.calls.append(Call(code, place, count, copied, self.step, grad))
