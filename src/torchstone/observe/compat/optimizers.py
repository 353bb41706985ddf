"""How optimizers and clipping choose their kernels."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch.nn.utils.clip_grad as clip_grad
import torch.optim.optimizer as optimizers
import torch.utils._foreach_utils as utilities

CLIPPING_STEP: tuple[ModuleType, str] = (clip_grad, "_clip_grads_with_norm_")
"""The second half of clip_grad_norm_, which looks it up at each call (torch 2.5 and newer)."""
DEVICES_BY_OPTIMIZERS: tuple[ModuleType, str] = (
    optimizers,
    "_get_foreach_kernels_supported_devices",
)


def devices_with_foreach_kernels() -> list[str]:
    """Kinds of devices on which all parameters are updated with one call."""
    return list(utilities._get_foreach_kernels_supported_devices())


def add_foreach_type(kind: Any) -> None:
    """Tensors of this class are updated together, too."""
    for types in (optimizers._foreach_supported_types, utilities._foreach_supported_types):
        if kind not in types:
            types.append(kind)
