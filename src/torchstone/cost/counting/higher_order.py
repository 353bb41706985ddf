"""Operators that take functions, such as attention with a score function."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch

from torchstone.cost.operators import Operator
from torchstone.cost.records.books import Scope, priced
from torchstone.observe.compat.operators import COMPOSITE_EXPLICIT_AUTOGRAD
from torchstone.observe.compat.trees import tree_leaves
from torchstone.runtime.on_meta.storage import Storages


class CountingMode(AbstractContextManager[Any], Protocol):
    """What is needed of the mode that counts."""

    storages: Storages

    def scope(self) -> Scope: ...


def run_higher_order(
    mode: CountingMode, operator: Operator, func: Any, args: Any, kwargs: dict[str, Any]
) -> Any:
    """Run one on meta tensors; what it is made of is counted in its place."""
    run = _RUNS.get(operator.name)
    if run is not None:
        return run(mode, operator, args, kwargs)
    with mode:
        return plain_form(operator, func)(*args, **kwargs)


def plain_form(operator: Operator, func: Any) -> Callable[..., Any]:
    """What a higher-order operator does, written with plain ones."""
    found: Callable[..., Any] | None
    found = func.py_kernels.get(COMPOSITE_EXPLICIT_AUTOGRAD)
    if found is None:
        raise NotImplementedError(f"{operator.name} has no plain form to count")
    return found


def _flex(mode: CountingMode, operator: Operator, args: Any, kwargs: dict[str, Any]) -> Any:
    """One fused kernel: the output and the logarithm of the sums."""
    query, _, value = args[:3]
    shape = (*query.shape[:-1], value.shape[-1])
    out = torch.empty(shape, dtype=query.dtype, device="meta")
    sums = torch.empty(query.shape[:-1], dtype=torch.float32, device="meta")
    result = (out, sums, torch.empty_like(sums))
    return _counted(mode, operator, args, kwargs, result)


def _flex_backward(
    mode: CountingMode, operator: Operator, args: Any, kwargs: dict[str, Any]
) -> Any:
    query, key, value = args[:3]
    grads = tuple(torch.empty_like(item) for item in (query, key, value))
    captured = tuple(None for _ in tree_leaves(args[-2]))
    return _counted(mode, operator, args, kwargs, (*grads, captured))


def _counted(mode: CountingMode, operator: Operator, args: Any, kwargs: Any, result: Any) -> Any:
    scope = mode.scope()
    for item in result:
        if isinstance(item, torch.Tensor):
            mode.storages.watch(item, "activation", scope)
    scope.calls[priced(operator, args, kwargs, result[0])] += 1
    return result


_RUNS = {"flex_attention": _flex, "flex_attention_backward": _flex_backward}
