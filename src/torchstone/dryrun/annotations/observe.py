"""Keeps the shapes with which functions of the user's own were called."""

from __future__ import annotations

from typing import Any

import torch

from torchstone.core.place import Place
from torchstone.dryrun.annotations.function_calls import FunctionCall
from torchstone.dryrun.record import ObservedArray, ObservedFunction

MOST_CALLS = 16
"""Different calls kept of one function: more say nothing new about its axes."""
Seen = dict[tuple[ObservedArray, ...], None]


class ShapeObserver:
    """Is told of every call; keeps those whose shapes are new."""

    def __init__(self) -> None:
        self._calls: dict[Place, Seen] = {}
        self._others: dict[Place, dict[tuple[str, str], None]] = {}

    def observe(self, call: FunctionCall) -> None:
        spot = call.defined_at()
        seen = self._calls.setdefault(spot, {})
        if len(seen) >= MOST_CALLS:
            return
        arrays = [ObservedArray(name, tuple(value.shape), _dtype(value))
                  for name, value in call.arguments.items() if isinstance(value, torch.Tensor)]  # fmt: skip
        arrays += results(call.result)
        others = self._others.setdefault(spot, {})
        for name, value in (*call.arguments.items(), ("return", call.result)):
            if not isinstance(value, torch.Tensor):
                others[name, type(value).__name__] = None
        seen[tuple(arrays)] = None

    def functions(self) -> tuple[ObservedFunction, ...]:
        return tuple(
            ObservedFunction(spot, tuple(calls), tuple(self._others[spot]))
            for spot, calls in self._calls.items()
            if any(calls)
        )


def results(value: Any) -> list[ObservedArray]:
    """The tensor that was given back, or those of a tuple in which all are tensors."""
    if isinstance(value, torch.Tensor):
        return [ObservedArray("return", tuple(value.shape), _dtype(value))]
    if type(value) is tuple and value and all(isinstance(one, torch.Tensor) for one in value):
        return [ObservedArray(f"return[{index}]", tuple(one.shape), _dtype(one))
                for index, one in enumerate(value)]  # fmt: skip
    return []


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
