"""Optimizers update all parameters with one call of an operator, as they do on CUDA.

It is what the real job does, with the temporary memory that this takes, and a fraction of the calls.
"""

from __future__ import annotations

import torch.optim.optimizer as optimizers
import torch.utils._foreach_utils as utilities
from torch._subclasses.fake_tensor import FakeTensor

from torchstone.dryrun.script.patches import put


def use_foreach_kernels() -> None:
    """Fake parameters count as CUDA's do: for the default of optimizers and of gradient clipping."""
    known = utilities._get_foreach_kernels_supported_devices()
    put(optimizers, "_get_foreach_kernels_supported_devices", lambda: [*known, "cpu"])
    for types in (optimizers._foreach_supported_types, utilities._foreach_supported_types):
        if FakeTensor not in types:
            types.append(FakeTensor)
