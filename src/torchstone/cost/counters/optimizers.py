"""Lists of tensors worked on at once, as optimizers do.

One FLOP per element and list operator. Fused steps, per parameter: Adam and AdamW 15 (weight decay
2, first moment 3, second moment 4, bias corrections 2, root 1, addition 1, division 1, update 1),
SGD 2 with momentum 3 and weight decay 2 more, Adagrad 7.
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import elements, input_bytes, size_bytes

FAMILY = Family("optimizers")

ADAM, SGD, MOMENTUM, DECAY, ADAGRAD = 15, 2, 3, 2, 7

_ELEMENTWISE = """
abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp expm1
floor frac lerp lgamma log log10 log1p log2 maximum minimum mul neg pow reciprocal round rsqrt
sigmoid sign sin sinh sqrt sub tan tanh trunc
""".split()


@FAMILY.counts(*(f"aten._foreach_{name}" for name in _ELEMENTWISE))
def made(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=elements(out))


@FAMILY.counts(*(f"aten._foreach_{name}_" for name in _ELEMENTWISE))
def changed(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """These return nothing: what is written is their first list."""
    return Count(
        vector=elements(args[0]), read=input_bytes(args, kwargs), written=size_bytes(args[0])
    )


@FAMILY.counts("aten._foreach_norm", "aten._foreach_powsum")
def norms(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Square and add."""
    return Count(vector=2 * elements(args[0]))


@FAMILY.counts("aten._foreach_max")
def maxima(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=elements(args[0]))


@FAMILY.counts("aten._foreach_copy_")
def copied(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(read=size_bytes(args[1]), written=size_bytes(args[0]))


@FAMILY.counts("aten._foreach_copy", "aten._foreach_clone")
def cloned(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(read=size_bytes(args[-1]), written=size_bytes(out))


@FAMILY.counts("aten._foreach_zero_", "aten._foreach_zero")
def zeroed(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(read=0, written=size_bytes(args[0]))


@FAMILY.counts("aten._amp_foreach_non_finite_check_and_unscale_")
def unscaled(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A check and a multiplication."""
    return Count(vector=2 * elements(args[0]), read=size_bytes(args), written=size_bytes(args[:2]))


@FAMILY.counts("aten._fused_adam_", "aten._fused_adamw_")
def adam(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Reads parameters, gradients and both moments; writes all but the gradients."""
    parameters, _grads, first, second, largest = args[:5]
    return Count(
        vector=ADAM * elements(parameters) + elements(largest),
        read=input_bytes(args, kwargs),
        written=size_bytes([parameters, first, second, largest]),
    )


@FAMILY.counts("aten._fused_sgd_")
def sgd(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    parameters, _grads, momentum = args[:3]
    each = SGD + DECAY * bool(kwargs.get("weight_decay"))
    return Count(
        vector=each * elements(parameters) + MOMENTUM * elements(momentum),
        read=input_bytes(args, kwargs),
        written=size_bytes([parameters, momentum]),
    )


@FAMILY.counts("aten._fused_adagrad_")
def adagrad(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    parameters, _grads, sums = args[:3]
    return Count(
        vector=ADAGRAD * elements(parameters),
        read=input_bytes(args, kwargs),
        written=size_bytes([parameters, sums]),
    )


def _list(*sizes: int) -> list[torch.Tensor]:
    return [torch.empty(size, device="meta") for size in sizes]


FAMILY.example(
    lambda: torch._foreach_add_(_list(3, 5), _list(3, 5), alpha=2.0),
    vector=8,
    read=4 * 16,
    written=4 * 8,
    why="two lists of 3 + 5 numbers are read, the first is written",
)
FAMILY.example(
    lambda: torch._foreach_sqrt(_list(3, 5)),
    vector=8,
    read=32,
    written=32,
    why="8 roots",
)
FAMILY.example(
    lambda: torch._fused_adamw_(
        _list(3, 5), _list(3, 5), _list(3, 5), _list(3, 5), [], _list(1, 1),
        lr=1e-3, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False,
    ),
    vector=15 * 8,
    read=4 * (4 * 8 + 2),
    written=4 * 3 * 8,
    why="8 parameters; four lists and two step counters are read, three lists are written",
)  # fmt: skip
