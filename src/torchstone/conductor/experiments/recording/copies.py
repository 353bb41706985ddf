"""Copies of arguments that keep pointing at each other and leave alone what cannot be copied."""

from __future__ import annotations

import copy
import types
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

_SHARED = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
    DataLoader,
    Dataset,
    Sampler,
)
"""Not copied: they are read by a call, and copies of them would lose their data or their place."""
_MOST_BYTES = 32 << 20
"""Of the tensors of one call: models of a test run are smaller, a copy of more takes too long."""
_MOST_DEPTH = 4


def copy_arguments(arguments: dict[str, Any]) -> dict[str, Any] | None:
    """All arguments with one memo, so that an optimizer still points at the copied model; None where
    they are too large or refuse to be copied."""
    memo: dict[int, Any] = {}
    size = 0
    for item in reachable(arguments.values()):
        if isinstance(item, torch.Tensor):
            size += item.numel() * item.element_size()
            if size > _MOST_BYTES:
                return None
            if not item.is_leaf:  # deepcopy refuses a tensor with a history
                fresh = item.detach().clone().requires_grad_(item.requires_grad)
                memo[id(item)] = fresh
        elif isinstance(item, torch.Generator):
            other = torch.Generator()
            other.set_state(item.get_state())
            memo[id(item)] = other
        elif isinstance(item, _SHARED) or hasattr(item, "allreduce"):  # the last: a process group
            memo[id(item)] = item
    try:
        return copy.deepcopy(arguments, memo)
    except Exception:  # whatever the classes of the project raise: it cannot be run again
        return None


def reachable(values: Iterable[Any], depth: int = 0) -> Iterable[Any]:
    """The values, and what containers, modules and plain objects among them hold."""
    for item in values:
        yield item
        if depth >= _MOST_DEPTH or isinstance(item, _SHARED):
            continue
        if isinstance(item, dict):
            yield from reachable(item.values(), depth + 1)
        elif isinstance(item, list | tuple | set):
            yield from reachable(item, depth + 1)
        elif isinstance(item, nn.Module):
            yield from item.parameters()
            yield from item.buffers()
            yield from reachable(vars(item).values(), depth + 2)
        elif isinstance(item, torch.optim.Optimizer):
            yield from reachable(item.state.values(), depth + 1)
        elif hasattr(item, "__dict__") and not isinstance(item, type):
            yield from reachable(vars(item).values(), depth + 1)
