"""Inputs of a plain torch model, guessed from its first layer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

DEFAULT_LENGTH = 128
IMAGE, VIDEO = (224, 224), (16, 112, 112)


def guessed_inputs(
    model: nn.Module, batch: int = 1, length: int | None = None
) -> tuple[torch.Tensor, ...] | None:
    """Positional inputs, or None when the first layer or the arguments of forward do not tell."""
    size = DEFAULT_LENGTH if length is None else length
    for module in model.modules():
        for kind, make in _MAKERS:
            if isinstance(module, kind):
                made = make(module, batch, size)
                return made if _demanded(model) == len(made) else None
    return None


def _demanded(model: nn.Module) -> int:
    """How many inputs forward cannot do without; one that takes anything takes one."""
    parameters = inspect.signature(model.forward).parameters.values()
    anything = any(item.kind is inspect.Parameter.VAR_POSITIONAL for item in parameters)
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [
        item
        for item in parameters
        if item.default is inspect.Parameter.empty and item.kind not in kinds
    ]
    return max(len(needed), 1 if anything or parameters else 0)


def _floats(module: nn.Module, *shape: int) -> torch.Tensor:
    """In the number format of the layer that takes them."""
    kinds = (item.dtype for item in module.parameters() if item.is_floating_point())
    return torch.empty(shape, dtype=next(kinds, torch.float32), device="meta")


def _convolution(*sides: int) -> Callable[[Any, int, int], tuple[torch.Tensor, ...]]:
    return lambda layer, batch, _: (_floats(layer, batch, layer.in_channels, *sides),)


def _sequence(layer: Any, batch: int, length: int) -> tuple[torch.Tensor, ...]:
    shape = (batch, length) if layer.batch_first else (length, batch)
    return (_floats(layer, *shape, layer.input_size),)


def _attention(layer: Any, batch: int, length: int) -> tuple[torch.Tensor, ...]:
    inner = layer.self_attn
    shape = (batch, length) if inner.batch_first else (length, batch)
    return (_floats(layer, *shape, inner.embed_dim),)


def _two_sequences(layer: Any, batch: int, length: int) -> tuple[torch.Tensor, ...]:
    shape = (batch, length) if layer.batch_first else (length, batch)
    return (_floats(layer, *shape, layer.d_model), _floats(layer, *shape, layer.d_model))


def _tokens(_layer: Any, batch: int, length: int) -> tuple[torch.Tensor, ...]:
    return (torch.empty(batch, length, dtype=torch.int64, device="meta"),)


_MAKERS: tuple[tuple[Any, Callable[[Any, int, int], tuple[torch.Tensor, ...]]], ...] = (
    (nn.Transformer, _two_sequences),
    (nn.TransformerEncoderLayer, _attention),
    (nn.RNNBase, _sequence),
    (nn.Embedding, _tokens),
    (nn.Linear, lambda layer, batch, _: (_floats(layer, batch, layer.in_features),)),
    (
        (nn.Conv1d, nn.ConvTranspose1d),
        lambda layer, batch, length: (_floats(layer, batch, layer.in_channels, length),),
    ),
    ((nn.Conv2d, nn.ConvTranspose2d), _convolution(*IMAGE)),
    ((nn.Conv3d, nn.ConvTranspose3d), _convolution(*VIDEO)),
)
"""What a first layer takes, with the batch and the length that are asked for."""
