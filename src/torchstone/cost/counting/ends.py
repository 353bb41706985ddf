"""Both ends of a pass: the inputs that go into a model, and the outputs its backward starts from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch

from torchstone.observe.compat.trees import tree_map_only

Inputs = Any
"""A tensor, a tuple of positional arguments, a mapping of keyword arguments, or a function that
makes them afresh (for what a run changes, such as a cache)."""
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_DEEP = 8


class NoGradientError(RuntimeError):
    """A training step was asked for, and the forward gives nothing to differentiate."""


def arguments_of(inputs: Inputs, adopt: Callable[[torch.Tensor], torch.Tensor]) -> Arguments:
    """Positional and keyword arguments on meta; `adopt` makes a stand-in of known content."""
    arguments: Arguments
    if isinstance(inputs, Mapping):
        arguments = (), dict(inputs)
    elif isinstance(inputs, (tuple, list)):
        arguments = tuple(inputs), {}
    else:
        arguments = (inputs,), {}
    seen: dict[int, torch.Tensor] = {}  # what is passed twice is one tensor

    def one(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in seen:
            seen[id(tensor)] = _stand_in(tensor, adopt)
        return seen[id(tensor)]

    made: Arguments = tree_map_only(torch.Tensor, one, arguments)
    return made


def _stand_in(tensor: torch.Tensor, adopt: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Of whole numbers (tokens, positions) the content may matter; what floats hold is a sample,
    and a cost that hangs on it would be no cost of the model."""
    if tensor.is_meta:
        return tensor
    if not tensor.is_floating_point():
        return adopt(tensor)
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    return made.requires_grad_(tensor.requires_grad)


def ends_of(output: Any) -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
    """Where the backward starts: the loss when there is one, else every output with a gradient."""
    loss = getattr(output, "loss", None)
    if loss is None and isinstance(output, Mapping):
        loss = output.get("loss")
    if isinstance(loss, torch.Tensor) and loss.requires_grad and not loss.dim():
        return [loss], [None]
    found = [item for item in _tensors_in(output) if item.requires_grad]
    if not found:
        raise NoGradientError("no output of the forward has a gradient: nothing to go back from")
    return found, [torch.empty_like(item) if item.dim() else None for item in found]


def _tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Tensors of an output, also inside of dataclasses and plain objects."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors_in(item, depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _tensors_in(item, depth + 1)
    elif is_dataclass(value) and not isinstance(value, type) and depth < _DEEP:
        for item in fields(value):
            yield from _tensors_in(getattr(value, item.name), depth + 1)
