"""Values in messages: arrays lie in the buffers beside a message, everything else is part of it."""

from __future__ import annotations

from dataclasses import dataclass, field

ARRAYS = ("torch", "numpy", "mindspore", "scalar")
"""Kinds of trees that are arrays; a scalar is one of numpy's numbers."""
Plain = None | bool | int | str | float
"""Words are read before numbers: one may be called nan."""


@dataclass(frozen=True, slots=True)
class Tree:
    """One value; `kind` says what it is: an array, a container, or something plain."""

    kind: str
    """One of `ARRAYS`, `list`, `tuple`, `dict`, `float` (one that JSON does not have), `torch_dtype` or `plain`."""
    dtype: str = ""
    shape: list[int] = field(default_factory=list)
    stride: list[int] = field(default_factory=list)
    buffer: int = -1
    """Where the elements are, in logical order; -1: they are not handed over."""
    memory: int = -1
    """Where the memory is that the array reaches, gaps included; arguments of a launch have it instead."""
    reach: int = 0
    """Elements of that memory."""
    offset: int = 0
    """Elements between a boundary of memory and the first one."""
    shared: bool = False
    """Whoever has the same buffer has the same array."""
    items: list[Tree] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """The keys of a dict."""
    plain: Plain = None

    @property
    def is_array(self) -> bool:
        return self.kind in ARRAYS


@dataclass(frozen=True, slots=True)
class AnswerTree:
    """An answer: how it is nested, and its leaves in order."""

    structure: object
    leaves: list[Tree]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one array lies in shared memory: the first call's `offset_bytes`, and how far on the next call's is."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    reach: int
    """Elements from the first to the last one, both included."""
    offset_bytes: int
    step_bytes: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The arrays of a list of leaves in shared memory; leaves that are no arrays are None here."""

    slots: tuple[Slot | None, ...]
    calls: int

    @property
    def size_bytes(self) -> int:
        return sum(slot.step_bytes * self.calls for slot in self.slots if slot is not None)


@dataclass(frozen=True, slots=True)
class SharedQuestion:
    """What several calls of one model are given: leaves of the inputs and room for the answers."""

    inputs: Layout
    outputs: Layout | None
    """None: nobody knows yet what an answer looks like."""
    tree: Tree
    """The inputs of a call with None for every array."""
