"""What torch did by itself in older versions, for programs that were written for them."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import torch

_STFT = re.compile(r"stft requires the return_complex parameter")
_VERBOSE = re.compile(r"(\w+)\.__init__\(\) got an unexpected keyword argument 'verbose'")


def older_behaviour(error: BaseException) -> str:
    """The name of what the program expects; empty where the exception says nothing of the kind."""
    text = str(error)[:300]
    if isinstance(error, RuntimeError) and _STFT.search(text):
        return "stft"
    match = _VERBOSE.search(text) if isinstance(error, TypeError) else None
    return "verbose" if match and hasattr(torch.optim.lr_scheduler, match[1]) else ""


def put_back(what: str) -> None:
    """From now on torch does as it did."""
    _WAYS[what]()


def _real_spectra() -> None:
    real = torch.stft
    signature = inspect.signature(real)

    @functools.wraps(real)
    def stft(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        if given.arguments.get("return_complex") is not None or args[0].is_complex():
            return real(*args, **kwargs)
        given.arguments["return_complex"] = True
        return torch.view_as_real(real(*given.args, **given.kwargs))

    torch.stft = stft


def _verbose_schedules() -> None:
    for kind in vars(torch.optim.lr_scheduler).values():
        if isinstance(kind, type) and hasattr(kind, "step") and "__init__" in vars(kind):
            _drop_verbose(kind)


def _drop_verbose(kind: Any) -> None:
    real = kind.__init__

    @functools.wraps(real)
    def construct(self: Any, *args: Any, verbose: Any = None, **kwargs: Any) -> None:
        real(self, *args, **kwargs)

    kind.__init__ = construct


_WAYS: dict[str, Callable[[], None]] = {"stft": _real_spectra, "verbose": _verbose_schedules}
