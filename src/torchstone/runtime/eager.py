"""While a model is looked at it runs as it is written: nothing is compiled, nothing is refused for
being on the meta device, and a known value can be printed."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch


@contextlib.contextmanager
def as_written() -> Iterator[None]:
    """While open, `torch.compile` gives back what it gets, compiled functions run uncompiled, and
    flex attention takes meta tensors."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(torch, "compile", _uncompiled))
        stack.enter_context(mock.patch.object(torch.Tensor, "__format__", _format))
        stack.enter_context(mock.patch.object(torch, "tensor", _tensor))
        # checks of the data, which a meta run does not have
        stack.enter_context(mock.patch.dict(os.environ, {"TRANSFORMERS_DISABLE_TORCH_CHECK": "1"}))
        if "torch._dynamo" in sys.modules:  # loading it only to rest it would cost a second
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        flex = sys.modules.get("torch.nn.attention.flex_attention")
        if flex is not None and hasattr(flex, "_validate_device"):
            stack.enter_context(mock.patch.object(flex, "_validate_device", return_value=None))
        yield


@contextlib.contextmanager
def no_fast_path() -> Iterator[None]:
    """While open, `nn.MultiheadAttention` runs the operators it is made of: its fast path packs
    tensors in ways that the meta device does not know."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


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
    made = _plain_tensor(data, device="cpu", **more).to(device)
    return made.requires_grad_(grad)


_plain_format: Callable[..., str] = torch.Tensor.__format__


def _format(tensor: torch.Tensor, spec: str) -> str:
    """Names such as f"expert_{index}" need the value, which may be known."""
    if tensor.is_meta and not tensor.dim():
        return format(tensor.item(), spec)
    return _plain_format(tensor, spec)
