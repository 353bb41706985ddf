"""One step of a model: inputs in, loss out, gradients made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchstone.core.errors import UsageError
from torchstone.core.text import Text

LossFunction = Callable[[Any], torch.Tensor]
_SEED = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """The inputs of a model's forward."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def mapped(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Batch:
        return Batch(
            map_tensors(self.args, change),
            {key: map_tensors(value, change) for key, value in self.kwargs.items()},
        )


def copy_of_input(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in memory of their own: a model may write into its inputs."""
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def as_batch(batch: Any) -> Batch:
    """A tensor, a tuple of arguments, or a dict of keywords."""
    if isinstance(batch, Batch):
        return batch
    if isinstance(batch, Mapping):
        return Batch((), dict(batch))
    return Batch(tuple(batch), {}) if isinstance(batch, tuple | list) else Batch((batch,), {})


def map_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same structure with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: map_tensors(item, change) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map_tensors(item, change) for item in value)
    return value


def floating_outputs(out: Any, depth: int = 0) -> list[torch.Tensor]:
    """Every floating tensor of an output, in order; data classes and ModelOutput included."""
    if isinstance(out, torch.Tensor):
        return [out] if out.is_floating_point() else []
    if depth > 6 or out is None:
        return []
    if isinstance(out, Mapping):
        values: Any = out.values()
    elif isinstance(out, list | tuple):
        values = out
    else:
        values = vars(out).values() if hasattr(out, "__dict__") else ()
    return [found for item in values for found in floating_outputs(item, depth + 1)]


def loss_of(
    out: Any,
    loss: LossFunction | None,
    projecting: AbstractContextManager[object] | None = None,
) -> torch.Tensor | None:
    """The loss to go back from: what the function gives, the model's own, or a fixed projection.

    A projection is made inside `projecting`: its operators are not the user's.
    """
    if loss is not None:
        found: object = loss(out)
        if not isinstance(found, torch.Tensor) or found.numel() != 1:
            shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
            raise UsageError(
                "compare_precision: loss", str(shape), Text("one number", "一个标量"),
                Text("let loss(output) return a scalar tensor", "请让 loss(output) 返回标量张量"),
            )  # fmt: skip
        return found
    own = getattr(out, "loss", None)
    if isinstance(own, torch.Tensor) and own.numel() == 1:
        return own
    tensors = [item for item in floating_outputs(out) if item.requires_grad]
    if len(tensors) == 1 and tensors[0].numel() == 1:
        return tensors[0]
    with projecting or nullcontext():
        return _projection(tensors) if tensors else None


def _projection(tensors: list[torch.Tensor]) -> torch.Tensor:
    """Fixed random signs: a plain sum has no gradient behind a softmax or a layer norm, and signs are
    the same numbers in every format."""
    generator = torch.Generator().manual_seed(_SEED)
    parts = []
    for item in tensors:
        signs = torch.randint(0, 2, item.shape, generator=generator) * 2 - 1
        weights = signs.to(item.device, item.dtype)
        parts.append((item * weights).sum() / max(item.numel(), 1) ** 0.5)
    return torch.stack([part.reshape(()) for part in parts]).sum() if len(parts) > 1 else parts[0]


def has_recurrent_layers(model: nn.Module) -> bool:
    return any(isinstance(module, nn.RNNBase) for module in model.modules())
