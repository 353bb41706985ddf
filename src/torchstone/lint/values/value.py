"""One value of the analysed program: what made it and what is known of it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

HALVES = frozenset(("float16", "bfloat16", "half"))
"""Types of half precision; `half` is one of the two, and nobody can see which."""
UNKNOWN_TYPE = frozenset(("",))
NO_TYPE: frozenset[str] = frozenset()


class Kind(Enum):
    """What sort of thing a value is."""

    UNKNOWN = "unknown"
    TENSOR = "tensor"
    MODULE = "module"
    OPTIMIZER = "optimizer"
    SCALER = "scaler"
    PARAMETERS = "parameters"
    """What `module.parameters()` gives, or one of it; `mark` is the module's."""
    DTYPE = "dtype"
    NUMBER = "number"
    NONE = "none"
    FUNCTION = "function"
    CLASS = "class"
    OBJECT = "object"
    CONTAINER = "container"


class Home(NamedTuple):
    """A function or class of the project; by place, because trees are not held on to."""

    path: str
    name: str
    line: int


Mark = tuple[str, int, int]
"""Where a value was made: names with one mark stand for one object."""


class Value(NamedTuple):
    """What is known of a value at a place; what is not known stays unknown.

    A tuple, because a walk makes tens of thousands and a frozen class costs four times as much.
    """

    kind: Kind = Kind.UNKNOWN
    name: str = ""
    """The full name of torch's class, function or dtype."""
    home: Home | None = None
    dtypes: frozenset[str] = UNKNOWN_TYPE
    """Every type that it may have, one for each path; "" for a type that is not known."""
    lowered: bool = False
    """Whether it is half because an autocast region made it so."""
    graph: bool | None = None
    """Whether it is part of an autograd graph."""
    constant: bool = False
    """Whether it was made of written numbers alone."""
    content: frozenset[str] = UNKNOWN_TYPE
    """What its numbers are, one for each path: `softmax`, `log_softmax`, `sigmoid` or `logsigmoid` of
    something, `logits` out of a layer with weights; "" when that is not known."""
    device: str = ""
    """`cpu` for a tensor that was made there and not moved, `given` for what comes from the caller or
    from parameters; "" when that is not known."""
    mode: str = ""
    """`train` or `eval`, for a module that was switched."""
    wrapped: str = ""
    """`DataParallel` or `DistributedDataParallel`, for a module inside of one on some path."""
    frozen: bool = False
    """Whether the parameters of a module take no gradients."""
    mark: Mark | None = None
    parts: tuple[tuple[object, Value], ...] = ()
    """What a container holds, by place or key."""

    @property
    def is_half(self) -> bool:
        """Whether it is half on every path."""
        return bool(self.dtypes) and self.dtypes <= HALVES

    @property
    def may_be_half(self) -> bool:
        """Whether it is half on some path that was seen."""
        return not self.dtypes.isdisjoint(HALVES)

    @property
    def half_type(self) -> str:
        """The half type that it has, or may have; "" when it has none."""
        found = self.dtypes & HALVES
        return next(iter(found)) if len(found) == 1 else "half" if found else ""

    def part(self, key: object) -> Value:
        """What a container holds under a key; the container's own type is that of its parts."""
        for name, value in self.parts:
            if name == key:
                return value
        if self.parts:
            return joined(*(value for _, value in self.parts))
        return self._replace(kind=Kind.UNKNOWN, mark=None, name="", home=None)

    def with_part(self, key: object, value: Value) -> Value:
        rows = [(name, old) for name, old in self.parts if name != key]
        if self.kind not in (Kind.CONTAINER, Kind.UNKNOWN, Kind.MODULE):
            return self
        kind = self.kind if self.kind is Kind.MODULE else Kind.CONTAINER
        return self._replace(kind=kind, parts=(*rows, (key, value))[-PARTS:])

    def typed(self, *dtypes: str, lowered: bool = False) -> Value:
        return self._replace(dtypes=frozenset(dtypes), lowered=lowered)


PARTS = 64  # entries of a container that are told apart
UNKNOWN = Value()
NUMBER = Value(Kind.NUMBER, dtypes=NO_TYPE, constant=True, graph=False)
NONE = Value(Kind.NONE, dtypes=NO_TYPE, constant=True, graph=False)
TENSOR = Value(Kind.TENSOR)


def joined(*values: Value) -> Value:
    """What holds on every one of several paths."""
    found = values[0] if values else UNKNOWN
    for value in values[1:]:
        if found is not value:
            found = _join(found, value)
    return found


def _join(one: Value, other: Value) -> Value:
    if one is other or one == other:
        return one
    if one.kind is Kind.NONE or other.kind is Kind.NONE:
        kept = other if one.kind is Kind.NONE else one
        return kept if kept.kind is not Kind.NONE else NONE
    parts = dict(one.parts)
    for key, value in other.parts:
        parts[key] = _join(parts[key], value) if key in parts else value
    return Value(
        one.kind if one.kind is other.kind else Kind.UNKNOWN,
        one.name if one.name == other.name else "",
        one.home if one.home == other.home else None,
        one.dtypes | other.dtypes,
        one.lowered or other.lowered,
        one.graph if one.graph == other.graph else None,
        one.constant and other.constant,
        one.content | other.content,
        one.device if one.device == other.device else "",
        one.mode if one.mode == other.mode else "",
        one.wrapped or other.wrapped,
        one.frozen and other.frozen,
        one.mark if one.mark == other.mark else None,
        tuple(parts.items())[-PARTS:],
    )
