"""A model in low precision for the time of a run: its own tensors are put aside and come back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from torchstone.tensors.compare.as_found import WriteGuard, model_as_found


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
) -> Iterator[tuple[list[Original], WriteGuard]]:
    """Floating parameters and buffers are cast to `low`, but for modules in `keep`.

    With `low` None (autocast) parameters stay as they are. Buffers get memory of their own in any case,
    because a forward writes to them and their first values are needed afterwards.
    """
    with model_as_found(model) as guard:
        originals = list(_originals(model))
        for item in originals:
            if low is not None and item.values.is_floating_point() and not _kept(item.name, keep):
                item.tensor.data = item.values.to(low, copy=item.is_buffer)
            elif item.is_buffer:
                item.tensor.data = item.values.clone()
        yield originals, guard


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
