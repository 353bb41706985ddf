"""While a model is looked at it runs as it is written: nothing is compiled, nothing is refused for
being on the meta device, and a known value can be printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import torch

from torchstone.observe.undo import Undo


def as_written(undo: Undo) -> None:
    """From now on `torch.compile` gives back what it gets, compiled functions run uncompiled, and
    flex attention takes meta tensors."""
    uncompiled(undo)
    undo.set(torch.Tensor, "__format__", _format)
    undo.set(torch, "tensor", _tensor)
    # checks of the data, which a meta run does not have
    _set_environment(undo, "TRANSFORMERS_DISABLE_TORCH_CHECK", "1")
    flex = sys.modules.get("torch.nn.attention.flex_attention")
    if flex is not None and hasattr(flex, "_validate_device"):
        undo.set(flex, "_validate_device", _any_device)


def uncompiled(undo: Undo) -> None:
    """From now on nothing is compiled."""
    undo.set(torch, "compile", _uncompiled)
    frame: Any = sys.modules.get("torch._dynamo.eval_frame")  # loading it would cost a second
    if frame is not None and hasattr(frame, "_stance"):
        undo.set(frame, "_stance", type(frame._stance)("force_eager"))


def no_fast_path(undo: Undo) -> None:
    """From now on `nn.MultiheadAttention` runs the operators it is made of: its fast path packs
    tensors in ways that the meta device does not know."""
    before = torch.backends.mha.get_fastpath_enabled()
    undo.later(lambda: torch.backends.mha.set_fastpath_enabled(before))
    torch.backends.mha.set_fastpath_enabled(False)


def _set_environment(undo: Undo, name: str, value: str) -> None:
    before = os.environ.get(name)

    def back() -> None:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before

    undo.later(back)
    os.environ[name] = value


def _any_device(*_: Any, **__: Any) -> None:
    """Takes the place of a check that knows no meta tensors."""


def _uncompiled(model: Any = None, **_: Any) -> Any:
    if model is None:
        return lambda function: function
    return model


_plain_tensor: Callable[..., torch.Tensor] = torch.tensor


def _tensor(data: Any, *, device: Any = None, **more: Any) -> torch.Tensor:
    """Numbers written in the code are known, also when they are put on the meta device: made
    there at once, they would be lost before any dispatch mode sees them."""
    if device is None or torch.device(device).type != "meta":
        return _plain_tensor(data, device=device, **more)
    grad = more.pop("requires_grad", False)
    made = _plain_tensor(_numbers(data), device="cpu", **more).to(device)
    return made.requires_grad_(grad)


def _numbers(data: Any) -> Any:
    """Tensors of one value in a list as numbers: their values may be known, and torch would ask the
    meta device for them in C, where nobody answers."""
    if isinstance(data, list | tuple):
        return [_numbers(item) for item in data]
    if isinstance(data, torch.Tensor) and data.is_meta and not data.dim():
        return data.item()
    return data


_plain_format: Callable[..., str] = torch.Tensor.__format__


def _format(tensor: torch.Tensor, spec: str) -> str:
    """Names such as f"expert_{index}" need the value, which may be known."""
    if tensor.is_meta and not tensor.dim():
        return format(tensor.item(), spec)
    return _plain_format(tensor, spec)
