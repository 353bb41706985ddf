"""The arguments and results of an operator as flat lists, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchstone.tensors.compare.shadow.operators import Operator


def tensors_of(args: Any, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Every tensor among the arguments."""
    return _tensors_in((*args, *kwargs.values()))


def written_tensors(facts: Operator, args: Any, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The arguments that the operator writes to."""
    chosen = [args[place] for place in facts.written if place < len(args)]
    return _tensors_in(chosen + [kwargs[name] for name in facts.written_names if name in kwargs])


def _tensors_in(values: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for item in values:
        if isinstance(item, torch.Tensor):
            found.append(item)
        elif isinstance(item, list | tuple):
            found += [one for one in item if isinstance(one, torch.Tensor)]
    return found


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same structure with every item changed."""
    if isinstance(value, list | tuple):
        return type(value)(mapped(item, change) for item in value)
    return change(value)


def flat(out: Any) -> list[Any]:
    """The results one after another."""
    if isinstance(out, list | tuple):
        return [
            one for item in out for one in (item if isinstance(item, list | tuple) else (item,))
        ]
    return [out]


def padded(items: Any, length: int) -> list[Any]:
    found = list(items)
    return (found + [found[-1] if found else None] * length)[:length]


def as_returned(func: Any, items: list[Any]) -> Any:
    """One result alone, several as a tuple, a list where the operator returns a list."""
    returns = func._schema.returns
    if len(returns) == 0:
        return None
    if len(returns) == 1:
        return items if "[]" in str(returns[0].type) or "List" in str(returns[0].type) else items[0]
    return tuple(items)
