"""Tensors below their interface: swapped, wrapped, read many at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = [
    "foreach_norm",
    "has_compatible_impl",
    "make_wrapper_subclass",
    "set_mkldnn_enabled",
    "swap_impl",
]

foreach_norm: Callable[..., Any] = torch._foreach_norm
"""Norms of many tensors in one call."""
has_compatible_impl: Callable[[Any, Any], bool] = torch._has_compatible_shallow_copy_type
swap_impl: Callable[[Any, Any], None] = torch._C._swap_tensor_impl
"""Two tensor objects exchange what they hold."""
make_wrapper_subclass: Callable[..., Any] = torch.Tensor._make_wrapper_subclass
set_mkldnn_enabled: Callable[[bool], None] = torch._C._set_mkldnn_enabled
