"""Optimizers update all parameters with one call of an operator, as they do on CUDA.

It is what the real job does, with the temporary memory that this takes, and a fraction of the calls.
"""

from __future__ import annotations

from torchstone.dryrun.script.patches import put
from torchstone.observe.compat.fakes import FakeTensor
from torchstone.observe.compat.optimizers import (
    DEVICES_BY_OPTIMIZERS,
    add_foreach_type,
    devices_with_foreach_kernels,
)


def use_foreach_kernels(device: str) -> None:
    """Fake parameters on the device that stands for CUDA count as CUDA's do: for the default of
    optimizers and of gradient clipping. A program that stays on the CPU keeps the CPU's default."""
    known = devices_with_foreach_kernels()
    put(*DEVICES_BY_OPTIMIZERS, lambda: [*known, device])
    add_foreach_type(FakeTensor)
