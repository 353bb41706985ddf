"""How each operator is treated: free, in place, computed from a cache, or asked for content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torchstone.cost.counters import Counter, counters
from torchstone.cost.counters.movement import FREE
from torchstone.observe.compat.operators import HigherOrderOperator, OpOverload, has_kernel
from torchstone.runtime.on_meta.content import ASKING, SELECTING

VIEW, IN_PLACE, FRESH, COMPOSITE, HIGHER_ORDER, RESHAPE = range(6)
# they share memory with their input although their schema does not say so
_HIDDEN_VIEWS = frozenset({"aten._unsafe_view", "aten._reshape_alias"})
_MATRIX = ("matmul", "attention", "convolution", "recurrent", "experts", "quantised")


@dataclass(slots=True, eq=False)
class Operator:
    """What is known of an operator before it is called."""

    name: str
    kind: int
    call: Callable[..., Any]
    """The operator itself, without the wrapper around it."""
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
    asks: bool = False
    """Its answer depends on what a tensor holds."""
    selects: bool = False
    """It takes positions or masks as indices."""
    bare: bool = False
    """`aten.empty`: a tensor that nothing is written to yet."""
    placed: bool = False
    """It makes a tensor from nothing, on a device that may be named."""
    writes: tuple[tuple[int, str], ...] = ()
    """Position and name of every argument that it writes to."""
    plain: bool = False
    """It makes new tensors from its arguments, and nothing else is to be said of it."""


KNOWN: dict[int, Operator] = {}
"""Operators met so far, by identity: an operator's own hash is slow, and it lives for ever."""


def operator_of(func: Any) -> Operator:
    """How an operator is treated."""
    found = KNOWN.get(id(func))
    if found is None:
        found = KNOWN[id(func)] = _look(func)
    return found


def _look(func: Any) -> Operator:
    known = counters()
    if isinstance(func, HigherOrderOperator):
        name = func.name()
        family, counter = known.get(name, ("", None))
        return Operator(
            name, HIGHER_ORDER, func, counter, counter is not None, family in _MATRIX, True
        )
    assert isinstance(func, OpOverload)
    name = str(func.overloadpacket)
    family, counter = known.get(name, ("", None))
    kind, position, by_name = _kind(func)
    arguments = frozenset(item.name for item in func._schema.arguments)
    takes = any("Tensor" in str(item.type) for item in func._schema.arguments)
    if kind == FRESH and counter is None and name not in FREE and _decomposes(func):
        kind = COMPOSITE
    return Operator(
        name=name,
        kind=kind,
        call=func._op,
        counter=counter,
        known=counter is not None or name in FREE or kind in (VIEW, RESHAPE),
        matrix=family in _MATRIX,
        takes_tensors=takes,
        written=position,
        by_name=by_name,
        returns=bool(func._schema.returns),
        arguments=arguments,
        # lists of parameters and their states have the right shapes, and there are thousands
        checked=kind == IN_PLACE and not name.startswith(("aten._foreach", "aten._fused")),
        asks=func in ASKING,
        selects=func in SELECTING,
        bare=name == "aten.empty",
        placed="device" in arguments and not takes,
        writes=_writes(func),
        plain=kind == FRESH
        and takes
        and func not in ASKING
        and func not in SELECTING
        and name != "aten.empty",
    )


def _writes(func: OpOverload) -> tuple[tuple[int, str], ...]:
    return tuple(
        (position, argument.name)
        for position, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )


def _decomposes(func: OpOverload) -> bool:
    return has_kernel(func.name(), "CompositeImplicitAutograd")


def _kind(func: OpOverload) -> tuple[int, int, str]:
    schema = func._schema
    types = [str(item.type) for item in (*schema.arguments, *schema.returns)]
    if not any("Tensor" in item for item in types):
        return VIEW, 0, ""  # marks for the profiler and the like: nothing is computed
    fresh = any(item.alias_info is None for item in schema.returns)
    if torch.Tag.inplace_view in func.tags:
        return RESHAPE, 0, ""
    if str(func.overloadpacket) in _HIDDEN_VIEWS:
        return VIEW, 0, ""
    for position, name in _writes(func):
        if not schema.returns or not fresh:
            return IN_PLACE, position, name
        return FRESH, 0, ""
    if schema.returns and not fresh:
        return VIEW, 0, ""
    return FRESH, 0, ""
