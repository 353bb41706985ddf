"""Counting a real step on real tensors, with the counters of the meta run.

with count_step(model) as step:
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
print(step.report.total["flops"])
"""

from __future__ import annotations

import contextlib
import time
from types import TracebackType
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from torchstone.cost.books import Books, Entry, Pages, Scope, priced
from torchstone.cost.engine import ALONE, thinned
from torchstone.cost.facts import facts_of, tensors_of
from torchstone.cost.ledger import FORWARD, OPTIMIZER, RECOMPUTE, Cost, Memory, Tally
from torchstone.cost.measure import report_of
from torchstone.cost.operators import COMPOSITE, HIGHER_ORDER, IN_PLACE, VIEW, operator_of
from torchstone.cost.report import CostReport
from torchstone.cost.stages import StageMap
from torchstone.runtime.modules import Paths, parts_of
from torchstone.runtime.storage import Storages


class count_step(TorchDispatchMode):  # noqa: N801  reads as a verb where it is used
    """Counts what runs while it is open; `cost` and `report` are there afterwards."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self, model: nn.Module, *, stages: StageMap | str | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._model = getattr(model, "_orig_mod", model)
        self._stages = stages
        self._books = Books()
        self._parts = parts_of(self._model)
        self._paths: Paths[Scope] = Paths(
            self._parts,
            lambda path, again: self._books.scope(path, RECOMPUTE if again else FORWARD),
        )
        self._paths.own()
        self._page = Pages(self._paths, self._books).current
        self._storages = Storages()
        self._entries: dict[Any, Entry] = {}
        self._timeline: list[tuple[str, int, int]] = []
        self._held: dict[str, int] = {}
        self._forward_over = False
        self._start = 0.0
        self.cost = Cost({}, {})

    @property
    def report(self) -> CostReport:
        """What was counted, as a report."""
        return report_of(
            self.cost,
            subject=type(self._model).__name__,
            stages=self._stages,
            config=getattr(self._model, "config", None),
        )

    def __enter__(self) -> count_step:
        with contextlib.ExitStack() as stack:
            stack.enter_context(ALONE)
            for tensor in tensors_of(self._parts):
                self._storages.watch(tensor, "static", None)
            stack.enter_context(self._paths.follow())
            self._stepping = _Stepping(self._paths, self._books, self._storages)
            stack.callback(self._stepping.close)
            self._stepping.open()
            self._start = time.process_time()
            super().__enter__()  # type: ignore[no-untyped-call]
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._open:
            super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]
        train = self._forward_over
        self.cost = Cost(
            entries=self._books.entries(),
            modules=facts_of(self._parts, self._books, self._held, {}),
            memory=self._memory(train),
            uncounted=self._books.uncounted(),
            train=train,
            seconds=time.process_time() - self._start,
        )

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        operator = operator_of(func)
        if operator.kind == VIEW:
            return func(*args, **kwargs)
        if operator.kind == COMPOSITE:
            with self:
                return func.decompose(*args, **kwargs)
        if operator.kind == HIGHER_ORDER and operator.counter is None:
            with self:
                return func(*args, **kwargs)
        out = func(*args, **kwargs)
        scope = self._page()
        if scope.phase != FORWARD and not self._forward_over:
            self._forward_ends()
        scope.calls[self._entry(operator, func, args, kwargs, out)] += 1
        if operator.kind != IN_PLACE:
            for item in tree_leaves(out):
                if isinstance(item, torch.Tensor):
                    self._storages.watch(item, "activation", scope)
            live = self._storages.live
            scope.peak = max(scope.peak, live)
            self._timeline.append((scope.phase, live, self._storages.activations))
        return out

    def _entry(self, operator: Any, func: Any, args: Any, kwargs: Any, out: Any) -> Entry:
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
        self._forward_over = True
        for kind, owner, size in self._storages.alive():
            if kind == "activation":
                self._held[owner.module] = self._held.get(owner.module, 0) + size

    def _memory(self, train: bool) -> Memory:
        parameters = [p for part in self._parts for p in part.module._parameters.values()]
        own = {id(p): p for p in parameters if p is not None}
        buffers = [b for part in self._parts for b in part.module._buffers.values()]
        peaks = self._stepping.corrected(self._books.peaks())
        static = self._storages.size_of("static")
        held = sum(self._held.values())
        return Memory(
            parameters=sum(p.numel() * p.element_size() for p in own.values()),
            buffers=sum(b.numel() * b.element_size() for b in buffers if b is not None),
            gradients=sum(
                p.grad.numel() * p.grad.element_size() for p in own.values() if p.grad is not None
            ),
            optimizer=self._stepping.state_bytes,
            activations=held if train else max(peaks.get(FORWARD, static) - static, 0),
            peaks=peaks,
            timeline=thinned(self._timeline),
        )


class _Stepping:
    """While an optimizer steps, the page is that of the optimizer."""

    def __init__(self, paths: Paths[Scope], books: Books, storages: Storages) -> None:
        self._paths, self._books, self._storages = paths, books, storages
        self.state_bytes = 0
        self._there_before = 0
        """State that earlier steps made: alive all along, and first seen when a step begins."""
        self._before: list[Scope] = []
        self._handles: list[Any] = []

    def open(self) -> None:
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        self._handles = [
            register_optimizer_step_pre_hook(self._begin),
            register_optimizer_step_post_hook(self._end),
        ]

    def _begin(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._there_before += sum(
            self._storages.watch(item, "optimizer", None) for item in _states(optimizer)
        )
        self._before.append(self._paths.current)
        self._paths.current = self._books.scope("", OPTIMIZER)

    def _end(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._paths.current = self._before.pop()
        for item in _states(optimizer):
            self._storages.turn(item, "optimizer")
        self.state_bytes = self._storages.size_of("optimizer")

    def corrected(self, peaks: dict[str, int]) -> dict[str, int]:
        """Peaks with the state that was there from the start."""
        return {
            phase: size + (0 if phase == OPTIMIZER else self._there_before)
            for phase, size in peaks.items()
        }

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()


def _states(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [
        item
        for state in optimizer.state.values()
        for item in state.values()
        if isinstance(item, torch.Tensor) and item.dim()
    ]
