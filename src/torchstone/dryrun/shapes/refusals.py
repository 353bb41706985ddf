"""Calls that eager torch refuses and fake tensors accept: told by shape, dtype and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Check = Callable[[Any, dict[str, Any]], None]


def _complex(args: Any, kwargs: dict[str, Any]) -> None:
    if args[0].dtype != args[1].dtype:
        raise RuntimeError(
            f"Expected object of scalar type {args[0].dtype} but got scalar type {args[1].dtype} "
            "for second argument"
        )


def _complex_out(args: Any, kwargs: dict[str, Any]) -> None:
    _complex(args, kwargs)
    wanted = args[0].dtype.to_complex()
    if kwargs["out"].dtype != wanted:
        raise RuntimeError(
            f"Expected object of scalar type {wanted} but got scalar type {kwargs['out'].dtype} "
            "for argument 'out'"
        )


def _uniform(args: Any, kwargs: dict[str, Any]) -> None:
    low = args[1] if len(args) > 1 else 0.0
    high = args[2] if len(args) > 2 else 1.0
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}"
        )


def _masked_scatter(args: Any, kwargs: dict[str, Any]) -> None:
    if args[1].dtype != torch.bool:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {args[1].dtype}"
        )


def _bucketize(args: Any, kwargs: dict[str, Any]) -> None:
    if args[1].dim() != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({args[1].dim()})")


def _multinomial(args: Any, kwargs: dict[str, Any]) -> None:
    weights, count = args[0], args[1]
    replacement = args[2] if len(args) > 2 else kwargs.get("replacement", False)
    if not weights.is_floating_point():
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {weights.dtype}"
        )
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and count > weights.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if weights.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")


CHECKS: dict[Any, Check] = {
    aten.complex.default: _complex,
    aten.complex.out: _complex_out,
    aten.uniform_.default: _uniform,
    aten.uniform.default: _uniform,
    aten.masked_scatter.default: _masked_scatter,
    aten.masked_scatter_.default: _masked_scatter,
    aten.bucketize.Tensor: _bucketize,
    aten.bucketize.Tensor_out: _bucketize,
    aten.multinomial.default: _multinomial,
}

_NO_OVERLAP = frozenset("cat masked_select index_select take kthvalue gather".split())
"""Operators that write while they still read: their output must not share memory with an input."""


def check_out(func: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """What eager asks of a tensor given as `out`."""
    outputs = [
        value for name, value in kwargs.items() if isinstance(value, torch.Tensor) and name in _OUT
    ]
    name = func._schema.name.removeprefix("aten::")
    inputs = [
        item for value in args for item in (value if isinstance(value, (list, tuple)) else (value,))
    ]
    for out in outputs:
        expanded = any(step == 0 and n > 1 for n, step in zip(out.shape, out.stride(), strict=True))
        if expanded:
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor refers to a "
                "single memory location. Please clone() the tensor before performing the operation."
            )
        if name in _NO_OVERLAP and any(_share(out, item) for item in inputs):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor "
                "refer to a single memory location. Please clone() the tensor before performing the "
                "operation."
            )


_OUT = ("out", "values", "indices", "self")


def _share(out: torch.Tensor, item: Any) -> bool:
    return (
        isinstance(item, torch.Tensor)
        and item.untyped_storage()._cdata == out.untyped_storage()._cdata
    )
