"""Parameters of lazy layers, which get their shape from the first input: they become fake then."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedTensorMixin, is_lazy  # type: ignore[attr-defined]

from torchstone.dryrun.script.fakes.lazy import make_fake
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import Session, is_fake
from torchstone.observe.compat.fakes import FakeTensor
from torchstone.observe.compat.tensors import swap_impl

_EXAMPLE = "_dryrun_example"
"""Where such a tensor keeps an empty one of the device and number format that it was sent to."""


def fake_uninitialized(session: Session) -> None:
    """From now on lazy layers get fake parameters, and buffers on the device that they were sent to."""
    original: Any = UninitializedTensorMixin.materialize

    def materialize(tensor: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        example = _example_of(tensor)
        made = torch.empty(shape, dtype=dtype or example.dtype, device=device or example.device)
        is_parameter = tensor.cls_to_become is nn.Parameter
        if is_parameter:
            made = make_fake(session.mode, made)
        if not is_fake(made):
            original(tensor, shape, device, dtype)
            return
        _become(tensor, made, is_parameter)

    put(UninitializedTensorMixin, "materialize", materialize)


def convert_uninitialized(tensor: Any, fn: Any) -> bool:
    """Keep where a tensor without a shape is sent to; False for one that has a shape."""
    if not is_lazy(tensor):
        return False
    tensor.__dict__[_EXAMPLE] = fn(_example_of(tensor))
    return True


def _example_of(tensor: Any) -> torch.Tensor:
    known: torch.Tensor | None = tensor.__dict__.pop(_EXAMPLE, None)
    return known if known is not None else torch.empty(0, dtype=tensor.dtype, device=tensor.device)


def _become(tensor: Any, made: torch.Tensor, is_parameter: bool) -> None:
    """The same object with the contents of a fake tensor: its module and its optimizer hold it."""
    requires_grad = is_parameter and tensor.requires_grad
    swap_impl(tensor, made)
    tensor.__class__ = FakeTensor
    tensor.__dict__.update(made.__dict__)
    if is_parameter:
        tensor._is_param = True
        tensor.requires_grad_(requires_grad)
