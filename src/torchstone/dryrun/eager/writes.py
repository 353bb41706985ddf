"""Which of its arguments an operator writes into."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch

_UNSAID = {"aten::native_batch_norm": (3, 4), "aten::cudnn_batch_norm": (3, 4)}
"""Running statistics are written in training, though the schema does not say it."""
_TRAINING = 5
"""The argument that tells whether they are."""


@functools.cache
def _places(func: Any) -> tuple[tuple[int, str], ...]:
    return tuple(
        (index, argument.name)
        for index, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )


def written_tensors(func: Any, args: Any, kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
    """The tensors among the arguments that a call writes into."""
    places = _places(func)
    if not places:
        unsaid = _UNSAID.get(func._schema.name)
        if unsaid is None or not args[_TRAINING]:
            return
        places = tuple((index, "") for index in unsaid)
    for index, name in places:
        value = args[index] if index < len(args) else kwargs.get(name)
        for target in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(target, torch.Tensor):
                yield target


def count_writes(func: Any, args: Any) -> None:
    """Operators on lists of tensors write into each of them: torch counts that in the kernels of a
    device, which fake tensors do not reach."""
    if func._schema.name.startswith("aten::_foreach_") and func._schema.is_mutable:
        torch.autograd.graph.increment_version(args[0])
