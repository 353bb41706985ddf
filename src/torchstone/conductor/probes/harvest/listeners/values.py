"""Copies, digests and kinds of values."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from torchstone.conductor.probes.harvest.recording import Signature
from torchstone.observe.compat.trees import tree_leaves, tree_map

_MOST_ELEMENTS = 1 << 21


def copied(value: Any) -> Any:
    """The same structure with tensors of its own."""

    def copy_of(item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            return item.detach().clone() if item.numel() <= _MOST_ELEMENTS else item.detach()
        if isinstance(item, (int, float, str, bool, type(None), torch.dtype, torch.device)):
            return item
        try:
            return copy.deepcopy(item)
        except Exception:  # an object that cannot be copied is handed on as it is
            return item

    return tree_map(copy_of, value)


def digest_of(value: Any) -> str:
    """A short name for the content of all tensors in a structure."""
    found = hashlib.sha256()
    for item in tree_leaves(value):
        if isinstance(item, torch.Tensor) and item.numel() <= _MOST_ELEMENTS:
            found.update(item.detach().double().numpy().tobytes())
    return found.hexdigest()[:16]


def is_state(item: Any) -> bool:
    """An argument that is neither number nor tensor: a cache, perhaps."""
    simple = (int, float, str, bool, type(None), torch.Tensor, torch.dtype, torch.device)
    return not isinstance(item, simple) and not callable(item)


def is_scalar(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.numel() == 1 and item.is_floating_point()


def is_integer(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.dtype in (torch.int64, torch.int32)


def is_tokens(item: Any) -> bool:
    return is_integer(item) and item.dim() == 2 and item.shape[1] > 2


def is_names(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


def parameters_of(optimizer: Any) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def gradient_norm(items: Iterable[torch.Tensor]) -> float:
    squares = [
        float(item.grad.detach().double().pow(2).sum()) for item in items if item.grad is not None
    ]
    return math.sqrt(sum(squares)) if squares else 0.0


def signature_of(value: torch.Tensor) -> Signature:
    """Norm, and the sum with weights that no permutation and no sign survives."""
    flat = value.detach().double().flatten()[:_MOST_ELEMENTS]
    weights = torch.cos(torch.arange(1, flat.numel() + 1, dtype=torch.float64))
    return Signature(float(flat.norm()), float(flat @ weights))
