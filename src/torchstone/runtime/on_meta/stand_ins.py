"""A model with meta stand-ins for what it holds, for as long as it is looked at."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.observe.undo import Undo
from torchstone.runtime.modules import Part
from torchstone.runtime.on_meta.content import Content


def on_meta(undo: Undo, parts: list[Part], content: Content) -> None:
    """From now on the model has meta stand-ins for its parameters and buffers; afterwards it is as
    it was, also in what its forward keeps: a tensor that it remembers would be a meta tensor."""
    before = [(module, dict(vars(module)), _homes(module)) for _, module in parts]
    made: dict[int, Any] = {}

    def back() -> None:
        for module, attributes, homes in before:
            vars(module).clear()
            vars(module).update(attributes)
            for home, held in homes:
                if home or held:
                    home.clear()
                    home.update(held)

    undo.later(back)
    for _, module in parts:
        for home in (module._parameters, module._buffers):
            for name, tensor in home.items():
                if tensor is None or not _can_stand_in(tensor):
                    continue
                if id(tensor) not in made:
                    made[id(tensor)] = _stand_in(tensor, content)
                home[name] = made[id(tensor)]


def _can_stand_in(tensor: torch.Tensor) -> bool:
    """Plain tensors, and subclasses that only carry a name. Others are refused in one line."""
    if is_lazy(tensor):
        raise _unsuitable(tensor, "run the model once, so that lazy layers know their sizes",
                          "请先运行一次模型，使惰性层得知其尺寸")  # fmt: skip
    plain = type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    if not plain or tensor.is_quantized:
        raise _unsuitable(tensor, "measure the model before it is sharded or quantised",
                          "请在切分或量化之前测量模型")  # fmt: skip
    return tensor.layout is torch.strided and not tensor.is_nested


def _unsuitable(tensor: torch.Tensor, en: str, zh: str) -> UsageError:
    return UsageError(
        "cost",
        f"a parameter or buffer of type {type(tensor).__name__}",
        Text("plain tensors", "普通张量"),
        Text(en, zh),
    )


def _homes(module: nn.Module) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Where a module keeps what it holds, with what that is."""
    return [
        (home, dict(home) if home else _NOTHING)
        for name, home in vars(module).items()
        if name in _HOMES
    ]


_NOTHING: dict[str, Any] = {}
_HOMES = frozenset(
    "_parameters _buffers _modules _forward_hooks _forward_hooks_with_kwargs "
    "_forward_hooks_always_called _forward_pre_hooks _forward_pre_hooks_with_kwargs "
    "_backward_hooks _backward_pre_hooks".split()
)


def _stand_in(tensor: torch.Tensor, content: Content) -> torch.Tensor:
    if isinstance(tensor, nn.Parameter):
        data = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
        return nn.Parameter(data, requires_grad=tensor.requires_grad)
    if tensor.is_meta:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    return content.adopt(tensor)
