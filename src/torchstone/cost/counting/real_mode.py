"""The dispatch mode of a real step: every operator runs as it is, and is counted."""

from __future__ import annotations

from typing import Any

import torch

from torchstone.cost.counting.higher_order import plain_form
from torchstone.cost.operators import (
    COMPOSITE,
    HIGHER_ORDER,
    IN_PLACE,
    RESHAPE,
    VIEW,
    Operator,
    operator_of,
)
from torchstone.cost.records.books import Books, Entry, Pages, Scope, priced
from torchstone.cost.records.ledger import FORWARD, Tally
from torchstone.observe.compat.trees import tree_leaves
from torchstone.observe.operators import OperatorMode
from torchstone.runtime.modules import Paths
from torchstone.runtime.on_meta.storage import Storages


class RealMode(OperatorMode):
    """Counts operators on the page of the module that runs, with the counters of a meta run."""

    def __init__(self, paths: Paths[Scope], books: Books) -> None:
        super().__init__()
        self.storages = Storages()
        self.timeline: list[tuple[str, int, int]] = []
        self.held: dict[str, int] = {}
        """Bytes kept for the backward when the forward ends, by module."""
        self.forward_over = False
        self._page = Pages(paths, books).current
        self._entries: dict[Any, Entry] = {}

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        operator = operator_of(func)
        if operator.kind in (VIEW, RESHAPE):
            return func(*args, **kwargs)
        if operator.kind == COMPOSITE:
            with self:
                return func.decompose(*args, **kwargs)
        if operator.kind == HIGHER_ORDER and operator.counter is None:
            with self:
                return plain_form(operator, func)(*args, **kwargs)
        out = func(*args, **kwargs)
        scope = self._page()
        if scope.phase != FORWARD and not self.forward_over:
            self._forward_ends()
        scope.calls[self._entry(operator, func, args, kwargs, out)] += 1
        if operator.kind != IN_PLACE:
            for item in tree_leaves(out):
                if isinstance(item, torch.Tensor):
                    self.storages.watch(item, "activation", scope)
            live = self.storages.live
            scope.peak = max(scope.peak, live)
            self.timeline.append((scope.phase, live, self.storages.activations))
        return out

    def _entry(self, operator: Operator, func: Any, args: Any, kwargs: Any, out: Any) -> Entry:
        """Priced once per metadata: a training loop repeats itself."""
        leaves = tree_leaves((args, kwargs, out))
        if any(isinstance(item, torch.Tensor) and item.is_nested for item in leaves):
            return Entry(operator.name, "none", Tally(calls=1), False)  # it has no shape to count
        parts: list[Any] = [func]
        for value in tree_leaves((args, kwargs)):
            if isinstance(value, torch.Tensor):
                parts.append((value.shape, value.stride(), value.dtype))
            else:
                parts.append(value)
        try:
            key = tuple(parts)
            found = self._entries.get(key)
        except TypeError:  # an argument that cannot be a key: priced every time
            return priced(operator, args, kwargs, out)
        if found is None:
            found = self._entries[key] = priced(operator, args, kwargs, out)
        return found

    def _forward_ends(self) -> None:
        self.forward_over = True
        for kind, owner, size in self.storages.alive():
            if kind == "activation":
                self.held[owner.module] = self.held.get(owner.module, 0) + size
