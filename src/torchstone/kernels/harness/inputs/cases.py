"""A case: one set of inputs, and what is known of the right answer to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from torchstone.kernels.harness.kits import mindspore_kit


@dataclass(slots=True)
class Answer:
    """One output of one case: what is right, and what may differ."""

    reference: torch.Tensor
    exact: torch.Tensor
    """The oracle's answer in double precision; the reference's own for integers and truths."""
    unit: torch.Tensor
    """The unit of error at every element."""
    open: torch.Tensor
    """Where the problem itself leaves the answer open: ties, thresholds hit exactly."""
    own_error: float
    """The largest error of the reference, in units."""
    stride: tuple[int, ...]
    kind: str


@dataclass(slots=True)
class Case:
    """One set of inputs with everything that is known of its right answer."""

    number: int
    family: str
    seed: int
    inputs: list[Any]
    answers: list[Answer]
    structure: Any
    resized: bool = False
    layout: str = "contiguous"
    poisoned: list[torch.Tensor] = field(default_factory=list)
    """For NaN and infinity: per output, where the answer depends on what was put in."""
    free: list[torch.Tensor] = field(default_factory=list)
    """Per output, where the answer is finite by torch's choice; see `conventions`."""
    lenient: bool = False
    """A poisoned weight may spoil what it is multiplied by zero for."""
    length: int = 0
    """How many numbers meet in one output; 0: as many as for the problem's own inputs."""
    own_error: float = 0.0
    """The reference's own error where it counts for this case alone."""
    size: int = 0
    """What the size has become that stands alone; 0: none does."""
    group: int = -1
    """Which of the problem's sizes has grown; -1: none, or all; -2: one, out of its turn."""


def kind_of(leaf: Any) -> str:
    """What sort of value an output is: a tensor, an array, or a plain number."""
    if isinstance(leaf, torch.Tensor):
        return "torch"
    if mindspore_kit.is_tensor(leaf):
        return "mindspore"
    return "numpy" if type(leaf).__module__ == "numpy" else "plain"


def structure_of(value: Any) -> Any:
    """Nesting without contents, to compare two answers by."""
    if isinstance(value, list | tuple):
        return [structure_of(item) for item in value]
    if isinstance(value, dict):
        return {str(key): structure_of(item) for key, item in value.items()}
    return "None" if value is None else "*"
