"""Fake tensors can be pickled: what comes back is a fake of the same kind.

A tensor that has no values has no bytes either. Its fields are written instead; whoever reads them,
in this process or on another rank, makes a new fake of them.
"""

from __future__ import annotations

from typing import Any

import torch

from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import Session
from torchstone.observe.compat.fakes import FakeTensor, FakeTensorMode
from torchstone.observe.compat.modes import DisableTorchFunction, disable_modes

_modes: list[FakeTensorMode] = []
"""The mode of the run that goes on in this process: pickled bytes name a function, not an object."""


def allow_pickling(session: Session) -> None:
    """From now on fake tensors and parameters are pickled by their fields."""
    _modes[:] = [session.mode]
    put(FakeTensor, "__reduce_ex__", _reduce_fake)


def _reduce_fake(tensor: Any, protocol: int) -> tuple[Any, ...]:
    is_parameter = isinstance(tensor, torch.nn.Parameter) or getattr(tensor, "_is_param", False)
    device = str(tensor.fake_device)
    given = (tuple(tensor.shape), tensor.stride(), tensor.dtype, device, tensor.requires_grad)
    return (rebuild_fake, (*given, is_parameter))


def rebuild_fake(
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
    device: str,
    requires_grad: bool,
    is_parameter: bool,
) -> torch.Tensor:
    """A fake of these fields in the mode of this process."""
    with disable_modes(), DisableTorchFunction(), _modes[0]:
        made = torch.empty_strided(shape, stride, dtype=dtype, device=device)
    if is_parameter:
        return torch.nn.Parameter(made, requires_grad)
    return made.requires_grad_(requires_grad) if requires_grad else made
