"""What is declared of an operator that can move to a device."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from torchstone.core.text import Text

Strategy = Literal["MoveOnly", "StandardOp", "FactoryOp"]
STRATEGIES: tuple[Strategy, ...] = ("MoveOnly", "StandardOp", "FactoryOp")

Arguments = dict[str, Any]
"""The arguments of one call by the names of the original's parameters, defaults filled in."""


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of call that behaves in one way: certified, verified and quarantined together."""

    name: str
    tolerance: float = 0.0
    """The largest absolute difference that is declared; 0 means equal in every bit."""
    relative: float = 0.0
    """What is added to it per unit of the largest absolute value of the original's result."""

    @property
    def exact(self) -> bool:
        return self.tolerance == 0 and self.relative == 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that stays with the original, why, and the edit that would let it move."""

    reason: Text
    edit: Text


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of a call as they were written."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


def call(*args: Any, **kwargs: Any) -> Call:
    """`call(a, b, c=1)` is written as the call itself is."""
    return Call(args, kwargs)


Sample = Callable[[np.random.Generator], Call]


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One operator: which calls move, how they are computed there, and how that is proven.

    The parameters of `case` are those of the original, in its order: arguments are bound by them,
    because real code calls by position and functions in C have no signature.
    """

    name: str
    case: Callable[..., Case | Refusal]
    sample: Sample
    """A random call of the original; together they cover every case."""
    backend: Callable[..., Any] | None = None
    """Computes the result from tensors; for a FactoryOp it makes the instance that does."""
    args_trans: Mapping[str, str] = field(default_factory=dict)
    """Parameter → rule by which its value becomes a tensor on the device."""
    output: str | tuple[str, ...] = "image"
    """Rule by which the result becomes what the original would have returned."""
    strategy: Strategy = "StandardOp"
    value_maps: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)
    inject: Mapping[str, Any] = field(default_factory=dict)
    structure: Callable[[Arguments], Arguments] | None = None
    batched: bool = False
    """Images of one shape can be computed together, and the result is that of each alone."""
    method: bool = False
    """The original is a method: the first argument is the object."""

    @property
    def data(self) -> tuple[str, ...]:
        return tuple(self.args_trans)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
        """The arguments by name. TypeError where the original would refuse the call too."""
        bound = signature_of(self.case).bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def judge(self, bound: Arguments) -> Case | Refusal:
        """The case of a call with these arguments, or why it stays."""
        signature = signature_of(self.case)
        if all(item.kind is item.POSITIONAL_OR_KEYWORD for item in signature.parameters.values()):
            return self.case(**bound)
        whole = inspect.BoundArguments(signature, OrderedDict(bound))
        return self.case(*whole.args, **whole.kwargs)


_SIGNATURES: dict[Callable[..., Any], inspect.Signature] = {}


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Kept: reading a signature takes as long as a small operator."""
    if function not in _SIGNATURES:
        _SIGNATURES[function] = inspect.signature(function)
    return _SIGNATURES[function]


def refuse(en: str, zh: str, edit_en: str = "", edit_zh: str = "") -> Refusal:
    return Refusal(Text(en, zh), Text(edit_en, edit_zh))
