"""A model in low precision for the time of a run: its own tensors are put aside and come back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class Original:
    """A parameter or buffer with the values it had."""

    name: str
    tensor: torch.Tensor
    values: torch.Tensor
    is_buffer: bool


@contextlib.contextmanager
def in_low_precision(
    model: nn.Module, low: torch.dtype | None, keep: frozenset[str] = frozenset()
) -> Iterator[list[Original]]:
    """Floating parameters and buffers are cast to `low`, but for modules in `keep`.

    With `low` None (autocast) only what the run may write to is protected: buffers, in memory of their
    own. Gradients are put aside too, and what the run registers or replaces is taken out again.
    """
    originals = list(_originals(model))
    gradients = [(item.tensor, item.tensor.grad) for item in originals]
    modules = [_ModuleState.of(module) for module in model.modules()]
    try:
        for item in originals:
            item.tensor.grad = None
            if low is not None and item.values.is_floating_point() and not _kept(item.name, keep):
                item.tensor.data = item.values.to(low, copy=item.is_buffer)
            elif item.is_buffer:
                item.tensor.data = item.values.clone()
        yield originals
    finally:
        for item in originals:
            item.tensor.data = item.values
        for tensor, gradient in gradients:
            tensor.grad = gradient
        for state in modules:
            state.restore()


@dataclass(frozen=True)
class _ModuleState:
    """What a module has registered, and its mode: a forward may replace a buffer or add a layer."""

    module: nn.Module
    training: bool
    registered: tuple[dict[str, object], ...]

    @classmethod
    def of(cls, module: nn.Module) -> _ModuleState:
        return cls(module, module.training, tuple(dict(table) for table in _tables(module)))

    def restore(self) -> None:
        self.module.training = self.training
        for table, items in zip(_tables(self.module), self.registered, strict=True):
            table.clear()
            table.update(items)


def _tables(module: nn.Module) -> tuple[dict[str, Any], ...]:
    """Those of a scripted module are no dicts, and cannot change."""
    tables: tuple[Any, ...] = (module._parameters, module._buffers, module._modules)
    return tuple(table for table in tables if isinstance(table, dict))


def _originals(model: nn.Module) -> Iterator[Original]:
    for name, parameter in model.named_parameters():
        yield Original(name, parameter, parameter.data, False)
    for name, buffer in model.named_buffers():
        yield Original(name, buffer, buffer.data, True)


def _kept(name: str, keep: frozenset[str]) -> bool:
    return any(name == module or name.startswith(module + ".") or not module for module in keep)


@contextlib.contextmanager
def kept_in_high(
    model: nn.Module, keep: frozenset[str], high: torch.dtype, low: torch.dtype
) -> Iterator[None]:
    """Modules in `keep` get their inputs in `high` and give their outputs in `low`."""

    def cast(value: object, dtype: torch.dtype) -> object:
        if isinstance(value, torch.Tensor):
            return value.to(dtype) if value.is_floating_point() else value
        if type(value) in (list, tuple):
            return type(value)(cast(item, dtype) for item in value)  # type: ignore[call-arg,attr-defined]
        if type(value) is dict:
            return {key: cast(item, dtype) for key, item in value.items()}
        return value

    handles = []
    for name, module in model.named_modules():
        if name in keep:
            handles.append(
                module.register_forward_pre_hook(
                    lambda _, args, kwargs: (cast(args, high), cast(kwargs, high)), with_kwargs=True
                )
            )
            handles.append(module.register_forward_hook(lambda _, __, out: cast(out, low)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
