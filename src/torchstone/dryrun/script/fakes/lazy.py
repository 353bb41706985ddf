"""Parameters are fake from their birth; data stay real until they meet one.

Files, samplers, tokenizers and label logic keep their true values, so that no invented number
steers the program where it would never go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import Session, TensorFaked, is_fake
from torchstone.observe.compat.backends import FAKE_DEVICE
from torchstone.observe.compat.fakes import FakeTensor, FakeTensorMode
from torchstone.observe.compat.modes import DisableTorchFunction, disable_modes
from torchstone.observe.compat.tensors import has_compatible_impl, swap_impl

_META = torch.device("meta")


def is_pretend(device: object) -> bool:
    return isinstance(device, torch.device) and device.type == FAKE_DEVICE


def make_mode() -> FakeTensorMode:
    """The mode that all fake tensors of a run belong to. It is never on the stack."""
    return FakeTensorMode(allow_non_fake_inputs=True)


def make_fake(mode: FakeTensorMode, tensor: torch.Tensor) -> torch.Tensor:
    """A fake of the same shape, strides, number format and gradient flag."""
    if is_fake(tensor):
        return tensor
    with disable_modes(), DisableTorchFunction():
        return mode.from_tensor(tensor, static_shapes=True)


def fake_input(
    mode: FakeTensorMode, tensor: torch.Tensor, device: torch.device | None = None
) -> torch.Tensor:
    """A fake in the place of a real input of one operator, whose storage nobody shares: many times
    faster. On the device of the real tensor if no other is named."""
    if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided:
        return make_fake(mode, tensor)
    if tensor.requires_grad or tensor.is_conj() or tensor.is_neg():
        return make_fake(mode, tensor)
    with disable_modes():
        meta = torch.ops.aten.empty_strided.default(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device=_META
        )
    return FakeTensor(mode, meta, device or tensor.device)


def _has_own_storage(tensor: torch.Tensor) -> bool:
    """Is it all that its storage holds? Parameters that are parts of one storage stay so."""
    return not is_fake(tensor) and tensor.untyped_storage().nbytes() == tensor.nbytes


def fake_parameters(session: Session) -> None:
    """From now on every `nn.Parameter` holds a fake tensor."""
    original = nn.Parameter.__new__

    def new(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        plain = type(data) is torch.Tensor or type(data) is nn.Parameter
        if plain and data.device.type != "meta" and data.layout is torch.strided:
            real = data.detach()
            data = (fake_input if _has_own_storage(real) else make_fake)(session.mode, real)
            if data is not real:
                session.report(TensorFaked(real, data))
        return original(cls, data, requires_grad)

    put(nn.Parameter, "__new__", new)


def convert_modules(keep_for_later: Callable[[Any, Any], bool]) -> None:
    """`module.to(...)`, `.half()`, `.cuda()`: torch's own swap refuses parameters that the fake
    mode holds a reference to, so the contents are exchanged underneath them. Tensors that have no
    contents yet are told of the conversion."""

    def apply(module: nn.Module, fn: Any, recurse: bool = True) -> nn.Module:
        if recurse:
            for child in module.children():
                child._apply(fn)
        for key, parameter in module._parameters.items():
            if parameter is None or keep_for_later(parameter, fn):
                continue
            parameter = _exchange(parameter, fn)
            if parameter.grad is not None:
                with torch.no_grad():
                    parameter.grad = fn(parameter.grad)
            module._parameters[key] = parameter
        for key, buffer in module._buffers.items():
            if buffer is not None and not keep_for_later(buffer, fn):
                module._buffers[key] = fn(buffer)
        return module

    put(nn.Module, "_apply", apply)


def _exchange(parameter: Any, fn: Any) -> Any:
    """The parameter with converted contents; a new one where contents of another kind come in, as when
    a parameter on the meta device gets memory."""
    with torch.no_grad():
        changed = fn(parameter)
    if changed is parameter:
        return parameter
    if not is_fake(changed) and has_compatible_impl(parameter, changed):
        parameter.data = changed
        return parameter
    if not (is_fake(changed) and is_fake(parameter)):
        return nn.Parameter(changed, parameter.requires_grad)
    _swap(parameter, changed.detach())
    return parameter


def _swap(parameter: torch.Tensor, changed: torch.Tensor) -> None:
    requires_grad = parameter.requires_grad
    swap_impl(parameter, changed)
    mine, theirs = parameter.__dict__, changed.__dict__
    for name in (
        "_fake_device",
        "fake_device",
        "fake_mode",
        "constant",
    ):  # what FakeTensor keeps beside it
        if name in theirs:
            mine[name] = theirs[name]
    parameter.requires_grad_(requires_grad)
