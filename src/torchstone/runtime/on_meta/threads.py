"""Threads that start while a model is looked at: a dispatch mode belongs to one thread, so what
they compute is not counted, and must be told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from torchstone.observe.compat.trees import tree_leaves
from torchstone.observe.operators import OperatorMode
from torchstone.observe.undo import Undo


def watch_threads(undo: Undo, missed: Callable[[str], None]) -> None:
    """From now on `missed` hears of every operator that a new thread calls on meta tensors."""
    original = threading.Thread.run

    def run(thread: threading.Thread) -> None:
        with _Ear(missed):
            original(thread)

    undo.set(threading.Thread, "run", run)


class _Ear(OperatorMode):
    """Hears what a thread calls, and lets it pass."""

    def __init__(self, missed: Callable[[str], None]) -> None:
        super().__init__()
        self._missed = missed

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = func(*args, **kwargs)
        leaves = tree_leaves((args, kwargs, out))
        if any(isinstance(item, torch.Tensor) and item.is_meta for item in leaves):
            self._missed(str(getattr(func, "overloadpacket", func)))
        return out
