"""GRU, LSTM and RNN on the pretend device: torch's native ones need kernels that it does not have.

They are taken apart into the operators that they are made of, by torch's own decompositions.
"""

from __future__ import annotations

from typing import Any

import torch

from torchstone.dryrun.script.fakes.calls import Calls, Handler
from torchstone.dryrun.script.fakes.lazy import is_pretend
from torchstone.observe.compat.compiler import find_decompositions
from torchstone.observe.compat.operators import function_of_torch

aten = torch.ops.aten
_NAMES = ("gru", "lstm", "rnn_tanh", "rnn_relu")


def take_recurrent_apart(calls: Calls) -> None:
    """From now on recurrent layers run step by step where they are on the pretend device."""
    for name in _NAMES:
        calls.handlers[function_of_torch(name)] = _handler(calls, name)


def _handler(calls: Calls, name: str) -> Handler:
    padded, packed = _named(name, "input"), _named(name, "data")

    def call(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if not is_pretend(args[0].fake_device if hasattr(args[0], "fake_device") else None):
            return calls.call(func, args, kwargs)
        is_packed = isinstance(args[3], (list, tuple))  # data, batch_sizes, state, parameters
        return calls.call(packed if is_packed else padded, args, kwargs)

    return call


def _named(name: str, overload: str) -> Any:
    """A decomposition under the name that a user knows."""
    operator = getattr(getattr(aten, name), overload)

    def run(*args: Any) -> Any:
        return find_decompositions([operator])[operator](*args)

    run.__name__, run.__module__ = name, "torch"
    return run
