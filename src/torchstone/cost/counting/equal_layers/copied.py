"""How the copying of one stack of equal layers goes: which layer stands for the others, what it was
given and gave, and how much memory there was at each boundary."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

from torchstone.cost.counting.equal_layers.layers import Stack


class Disagreement(Exception):  # noqa: N818  a reason to run again, not an error
    """Layers that look the same do not behave the same."""


@dataclass
class Moment:
    """Memory at one point of the run: all that is alive, and the activations among it."""

    live: int
    activations: int

    def __sub__(self, other: Moment) -> Moment:
        return Moment(self.live - other.live, self.activations - other.activations)

    def __add__(self, other: Moment) -> Moment:
        return Moment(self.live + other.live, self.activations + other.activations)


@dataclass
class Copied:
    """How one stack is going: which layer stands for the others, and memory at each boundary."""

    stack: Stack
    first: int = -1
    """The first layer with such arguments. It is not copied: what it is given may live longer
    than what others are given (the caller still holds the embeddings)."""
    template: int = -1
    """The second one, which stands for those after it."""
    key: Any = None
    """Metadata of its arguments."""
    outputs: Any = None
    spec: Any = None
    starts: dict[int, Moment] = field(default_factory=dict)
    entries: dict[int, Moment] = field(default_factory=dict)
    """When the gradient of a layer's output is complete."""
    ends: dict[int, Moment] = field(default_factory=dict)
    """When the gradient of a layer's input is complete."""
    gradient: Any = None
    """Metadata of the gradient that a layer hands on."""
    given: Any = None
    """Weak reference to the storage of the template's input."""
    keeps: bool = False
    """The template's input outlives its call: it is held for the backward."""
    keeps_output: bool = False
    """The template holds its own output for the backward (the result of a relu)."""
    copied: list[int] = field(default_factory=list)
    called: set[int] = field(default_factory=set)
    hooked: bool = False
    """The model put hooks on the layers after the run began: they are run, none is copied."""

    @property
    def last(self) -> int:
        return len(self.stack.layers) - 1

    def agrees(self) -> bool:
        """Do the template and the last layer change memory alike in the backward?"""
        changes = [
            self.ends[index] - self.entries[index]
            for index in (self.template, self.last)
            if index in self.ends and index in self.entries
        ]
        return len(changes) < 2 or changes[0] == changes[1]


@dataclass(frozen=True)
class Argument:
    """An output that is one of the arguments (a cache that goes through the layers)."""

    place: int


def described(leaves: list[Any]) -> Any:
    """Metadata of a layer's arguments; None when they hold something that cannot be compared."""
    parts: list[Any] = []
    flowing = 0
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            parts.append((leaf.shape, leaf.stride(), leaf.dtype, leaf.requires_grad))
            flowing += leaf.requires_grad
        elif leaf is None or isinstance(leaf, (int, float, bool, str)):
            parts.append(leaf)
        else:
            parts.append(id(leaf))
    return tuple(parts) if flowing <= 1 else None


def flowing(leaves: list[Any]) -> torch.Tensor | None:
    """The tensor that goes from layer to layer: the first with a gradient, else the first."""
    tensors = [item for item in leaves if isinstance(item, torch.Tensor)]
    return next((item for item in tensors if item.requires_grad), tensors[0] if tensors else None)


def reference(tensor: torch.Tensor) -> Any:
    return weakref.ref(tensor.untyped_storage())


def address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
