"""How each operator is treated: free, in place, computed from a cache, or asked for content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload

from torchstone.cost.counters import Counter, counters
from torchstone.cost.counters.movement import FREE

VIEW, IN_PLACE, FRESH, COMPOSITE, HIGHER_ORDER = range(5)
# they share memory with their input although their schema does not say so
_HIDDEN_VIEWS = frozenset({"aten._unsafe_view", "aten._reshape_alias"})
_MATRIX = ("matmul", "attention", "convolution", "recurrent", "experts", "quantised")


@dataclass(slots=True)
class Operator:
    """What is known of an operator before it is called."""

    name: str
    kind: int
    counter: Counter | None
    known: bool
    """False for an operator without a counter that is not free either."""
    matrix: bool
    """It belongs to the matrix products, whose output elements are counted as activations."""
    takes_tensors: bool
    written: int = 0
    """Position of the argument that an in-place operator returns."""
    by_name: str = ""
    """Its name, for operators that write to `out=`."""
    returns: bool = True
    arguments: frozenset[str] = frozenset()
    checked: bool = False
    """In place, and worth running once on meta: it finds wrong shapes."""


class Operators:
    """Operators met so far."""

    def __init__(self) -> None:
        self._known: dict[Any, Operator] = {}
        self._counters = counters()

    def get(self, func: Any) -> Operator:
        found = self._known.get(func)
        if found is None:
            found = self._known[func] = self._look(func)
        return found

    def _look(self, func: Any) -> Operator:
        if isinstance(func, HigherOrderOperator):
            name = f"higher_order.{func.name()}"
            family, counter = self._counters.get(name, ("", None))
            return Operator(name, HIGHER_ORDER, counter, counter is not None, False, True)
        assert isinstance(func, OpOverload)
        name = str(func.overloadpacket)
        family, counter = self._counters.get(name, ("", None))
        kind, position, by_name = _kind(func)
        if kind == FRESH and counter is None and name not in FREE and _decomposes(func):
            kind = COMPOSITE
        return Operator(
            name=name,
            kind=kind,
            counter=counter,
            known=counter is not None or name in FREE or kind == VIEW,
            matrix=family in _MATRIX,
            takes_tensors=any("Tensor" in str(item.type) for item in func._schema.arguments),
            written=position,
            by_name=by_name,
            returns=bool(func._schema.returns),
            arguments=frozenset(item.name for item in func._schema.arguments),
            checked=kind == IN_PLACE,
        )


def _decomposes(func: OpOverload) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")


def _kind(func: OpOverload) -> tuple[int, int, str]:
    schema = func._schema
    types = [str(item.type) for item in (*schema.arguments, *schema.returns)]
    if not any("Tensor" in item for item in types):
        return VIEW, 0, ""  # marks for the profiler and the like: nothing is computed
    fresh = any(item.alias_info is None for item in schema.returns)
    if torch.Tag.inplace_view in func.tags or str(func.overloadpacket) in _HIDDEN_VIEWS:
        return VIEW, 0, ""
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            if not schema.returns or not fresh:
                return IN_PLACE, position, argument.name
            return FRESH, 0, ""
    if schema.returns and not fresh:
        return VIEW, 0, ""
    return FRESH, 0, ""
