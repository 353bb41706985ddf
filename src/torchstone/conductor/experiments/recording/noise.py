"""Takes out of a run what differs between two runs without being wrong. Nothing is put back."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

_DROPOUTS = (
    "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout feature_dropout"
)

_DROPOUT_AT = 4
"""Where `scaled_dot_product_attention` has its `dropout_p`."""


def switch_dropout_off() -> None:
    """Every form of dropout hands its input on; attention drops nothing."""
    same: Any = lambda given, *_, **__: given  # noqa: E731
    torch.dropout = same
    for name in _DROPOUTS.split():
        if hasattr(nn.functional, name):
            setattr(nn.functional, name, same)
    attention: Any = nn.functional.scaled_dot_product_attention

    def without_dropout(*args: Any, **named: Any) -> Any:
        named.pop("dropout_p", None)
        kept = (
            args
            if len(args) <= _DROPOUT_AT
            else (*args[:_DROPOUT_AT], 0.0, *args[_DROPOUT_AT + 1 :])
        )
        return attention(*kept, **named)

    functional: Any = nn.functional
    functional.scaled_dot_product_attention = without_dropout


def switch_autocast_off() -> None:
    """Everything is computed in the type that it has."""
    kind: Any = torch.amp.autocast_mode.autocast
    init = kind.__init__

    def off(region: Any, *_: Any, **__: Any) -> None:
        init(region, "cpu", torch.bfloat16, False)

    kind.__init__ = off


def use_running_statistics() -> None:
    """Batch normalisation uses what it has learned so far: a sample does not depend on its batch."""
    norm: Any = nn.functional.batch_norm

    def still(
        input: Any,
        running_mean: Any,
        running_var: Any,
        weight: Any = None,
        bias: Any = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Any:
        batch_only = running_mean is None or running_var is None
        return norm(
            input, running_mean, running_var, weight, bias, training and batch_only, momentum, eps
        )

    nn.functional.batch_norm = still
