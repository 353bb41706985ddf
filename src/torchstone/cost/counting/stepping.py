"""A step of an optimizer on meta tensors: the first makes its state, those after it are the cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from torchstone.cost.counting.meta_mode import MetaMode
from torchstone.cost.records.books import Books, Scope
from torchstone.cost.records.ledger import OPTIMIZER
from torchstone.runtime.on_meta.storage import Storages

MakeOptimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


def step_twice(optimizer: torch.optim.Optimizer, mode: MetaMode, books: Books) -> None:
    """Count the second step; the peak is that of both."""
    _follow_states(optimizer, mode.storages)
    first, later = Scope("", OPTIMIZER), books.scope("", OPTIMIZER)
    _step(optimizer, mode, first)
    _step(optimizer, mode, later)
    later.peak = max(first.peak, later.peak)
    _turn_states(optimizer, mode.storages)


def _step(optimizer: torch.optim.Optimizer, mode: MetaMode, scope: Scope) -> None:
    before = mode.paths.current
    mode.paths.current = scope
    try:
        with mode:
            optimizer.step()
    finally:
        mode.paths.current = before


def _follow_states(optimizer: torch.optim.Optimizer, storages: Storages) -> None:
    """What the optimizer makes first is its state, before it makes temporary tensors."""
    begin = getattr(optimizer, "_init_group", None)
    if begin is None:
        return

    def begun(*args: Any, **kwargs: Any) -> Any:
        result = begin(*args, **kwargs)
        _turn_states(optimizer, storages)
        return result

    optimizer._init_group = begun  # type: ignore[attr-defined]


def _turn_states(optimizer: torch.optim.Optimizer, storages: Storages) -> None:
    for state in optimizer.state.values():
        for tensor in state.values():
            if isinstance(tensor, torch.Tensor) and tensor.is_meta:
                storages.turn(tensor, "optimizer")
