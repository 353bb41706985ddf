"""The books of a run: a page per module and phase, an entry per operator and metadata.

Counting a call is one increment; what a call costs is worked out once per distinct metadata.
"""

from __future__ import annotations

from collections import Counter as Tallies
from collections.abc import Callable
from typing import Any

import torch

from torchstone.cost.operators import Operator
from torchstone.cost.records.ledger import BACKWARD, FORWARD, RECOMPUTE, Key, Tally
from torchstone.observe.compat.autograd import graph_task, saved_tensor_hooks
from torchstone.observe.compat.trees import tree_leaves
from torchstone.runtime.modules import Paths


class Entry:
    """One operator on one set of metadata: what a call costs and what it gives."""

    __slots__ = ("dtype", "followed", "known", "many", "name", "outputs", "tally")

    def __init__(self, name: str, dtype: str, tally: Tally, known: bool) -> None:
        self.name, self.dtype, self.tally, self.known = name, dtype, tally, known
        self.outputs: tuple[Any, ...] = ()
        """Size, stride, number format and bytes of each output tensor; None for none."""
        self.many: type | None = None
        """Tuple or list when there are several outputs."""
        self.followed = 0
        """Whether to follow the content: 0 never, 1 when contents of floats are known, 2 always."""


class Scope:
    """The page of one module in one phase: how often each entry occurred, and the peak."""

    __slots__ = ("calls", "module", "peak", "phase")

    def __init__(self, module: str, phase: str) -> None:
        self.module, self.phase = module, phase
        self.calls: Tallies[Entry] = Tallies()
        self.peak = 0


class Books:
    """All pages."""

    def __init__(self) -> None:
        self.scopes: dict[tuple[str, str], Scope] = {}

    def scope(self, module: str, phase: str) -> Scope:
        key = (module, phase)
        found = self.scopes.get(key)
        if found is None:
            found = self.scopes[key] = Scope(module, phase)
        return found

    def place(self, module: str, again: bool) -> Scope:
        """The page of a module that is called; `again` when that is inside a backward."""
        return self.scope(module, RECOMPUTE if again else FORWARD)

    def distinct(self) -> set[Entry]:
        """Every entry that occurs, once."""
        return set().union(*(scope.calls for scope in self.scopes.values()))

    def entries(self) -> dict[Key, Tally]:
        result: dict[Key, Tally] = {}
        products: dict[tuple[Entry, int], Tally] = {}  # equal layers ask for the same ones
        sums: dict[tuple[int, int], Tally] = {}
        for scope in self.scopes.values():
            module, phase = scope.module, scope.phase
            for pair in scope.calls.items():
                entry = pair[0]
                key = _key(Key, (module, phase, entry.name, entry.dtype))
                tally = products.get(pair)
                if tally is None:
                    tally = products[pair] = entry.tally * pair[1]
                known = result.get(key)
                if known is not None:
                    both = (id(known), id(tally))
                    if both not in sums:
                        sums[both] = known + tally
                    tally = sums[both]
                result[key] = tally
        return result

    def uncounted(self) -> frozenset[str]:
        return frozenset(entry.name for entry in self.distinct() if not entry.known)

    def peaks(self) -> dict[str, int]:
        """Highest memory in use, by phase."""
        result: dict[str, int] = {}
        for scope in self.scopes.values():
            if scope.peak:
                result[scope.phase] = max(result.get(scope.phase, 0), scope.peak)
        return result


_key: Callable[..., Key] = tuple.__new__
"""The short way to make one: there are as many as operators in a model."""


class Pages:
    """Chooses the page: by the module that runs, in the backward by the node that runs."""

    def __init__(self, paths: Paths[Scope], books: Books) -> None:
        self._paths, self._books = paths, books

    def current(self) -> Scope:
        paths = self._paths
        if paths.depth_in_backward or graph_task() == -1:
            return paths.current
        path = paths.of_node()
        if torch.is_grad_enabled() and _recomputing():
            return self._books.scope(path, RECOMPUTE)
        found = self._books.scopes.get((path, BACKWARD))
        return found or self._books.scope(path, BACKWARD)


def _recomputing() -> bool:
    """Is a checkpointed function run again, inside the backward?"""
    hooks = saved_tensor_hooks()
    return bool(hooks) and hooks[0].__module__ == "torch.utils.checkpoint"


def priced(operator: Operator, args: Any, kwargs: Any, out: Any) -> Entry:
    """The entry for a call: its counter's figures, and the plain rule for bytes."""
    went_in = [item for item in tree_leaves((args, kwargs)) if isinstance(item, torch.Tensor)]
    came_out = [item for item in tree_leaves(out) if isinstance(item, torch.Tensor)]
    count = operator.counter(args, kwargs, out) if operator.counter else None
    read = count.read if count else None
    written = count.written if count else None
    if read is None:
        read = sum(bytes_of(item) for item in {id(item): item for item in went_in}.values())
    if written is None:
        written = sum(bytes_of(item) for item in came_out)
    tally = Tally(
        calls=1,
        flops=count.flops if count else 0,
        vector_flops=count.vector if count else 0,
        extra_flops=count.extra if count else 0,
        bytes_read=read,
        bytes_written=written,
        elements=came_out[0].numel() if operator.matrix and came_out else 0,
        causal_flops=count.causal if count else 0,
    )
    return Entry(operator.name, _format(went_in, came_out), tally, operator.known)


def _format(went_in: list[torch.Tensor], came_out: list[torch.Tensor]) -> str:
    """Number format of the computation: that of the first tensor that has more than one value."""
    tensors = [*went_in, *came_out]
    chosen = next((item for item in tensors if item.dim() and item.is_floating_point()), None)
    if chosen is None:
        chosen = tensors[0] if tensors else None
    return str(chosen.dtype).removeprefix("torch.") if chosen is not None else "none"


def bytes_of(tensor: torch.Tensor) -> int:
    """Bytes that a pass over the tensor touches: an expanded dimension is read once."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        return tensor.numel() * tensor.element_size()
    if not tensor.numel():
        return 0
    count = tensor.element_size()
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        if stride:
            count *= size
    return count
