"""The autograd engine: which node runs, which number it has, what is being transformed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._C._functorch import is_functorch_wrapped_tensor

__all__ = [
    "current_node",
    "graph_task",
    "is_batched",
    "is_functorch_wrapped_tensor",
    "is_transformed",
    "next_sequence_number",
    "saved_tensor_hooks",
]

next_sequence_number: Callable[[], int] = torch._C._autograd._get_sequence_nr
"""The number that the next node will have."""
current_node: Callable[[], Any] = torch._C._current_autograd_node
"""The node whose backward runs in this thread, or None."""
graph_task: Callable[[], int] = torch._C._current_graph_task_id
"""The number of the running backward pass; -1 outside of one."""
_functorch = torch._C._functorch


def is_batched(tensor: torch.Tensor) -> bool:
    """Does it stand for many tensors under vmap? Then it has no values of its own."""
    return bool(_functorch.is_batchedtensor(tensor) or _functorch.is_legacy_batchedtensor(tensor))


def is_transformed() -> bool:
    """Is a function transform (vmap, grad) running?"""
    return _functorch.peek_interpreter_stack() is not None


def saved_tensor_hooks() -> Any:
    """The hooks for saved tensors that were set last, or None."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True)
