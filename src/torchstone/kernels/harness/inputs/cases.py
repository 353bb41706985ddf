"""A case: one set of inputs, and what is known of the right answer to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch

from torchstone.kernels.harness.kits import mindspore_kit
from torchstone.kernels.harness.reference.running import Values

MOST_OWN_ERROR = 16.0
"""Units by which the reference itself may be off and excuse a whole family; the most seen on the
corpus is 13, an approximation of erf. An element that is off by more excuses itself alone."""


class Runs(Protocol):
    """Runs of the oracle that show what rounding does to every output, made when asked for."""

    @property
    def done(self) -> int: ...
    def once_more(self) -> bool: ...
    def all(self) -> None: ...
    def sensitivity(self, output: int) -> torch.Tensor: ...
    def changed(self, output: int) -> torch.Tensor: ...


@dataclass(frozen=True, slots=True)
class Rounding:
    """What rounding to a format does to a value: a part of it, and something at least."""

    relative: float
    absolute: float

    def of(self, values: torch.Tensor) -> torch.Tensor:
        """To every element."""
        return torch.nan_to_num(self.relative * values.abs(), nan=0.0) + self.absolute


@dataclass(slots=True)
class Answer:
    """One output of one case: what is right, and what may differ."""

    output: int
    reference: torch.Tensor
    exact: torch.Tensor
    """The oracle's answer in double precision; the reference's own for integers and truths."""
    least: Rounding | None
    """What rounding the answer itself does at every element; None for integers and truths."""
    runs: Runs | None
    """What shows how much more rounding does; None: no more is asked."""
    kind: str

    @property
    def stride(self) -> tuple[int, ...]:
        return tuple(self.reference.stride())

    @property
    def unit_so_far(self) -> torch.Tensor:
        """The unit of error at every element by the runs so far; never more than `unit`."""
        if self.least is None:
            return torch.zeros(self.reference.shape)
        unit = self.least.of(self.exact)
        if self.runs is not None and self.runs.done:
            unit = unit + torch.nan_to_num(self.runs.sensitivity(self.output), nan=0.0)
        own = torch.nan_to_num(self._off(), nan=0.0, posinf=0.0)
        return torch.maximum(unit, own / MOST_OWN_ERROR)

    @property
    def unit(self) -> torch.Tensor:
        """The unit of error at every element."""
        self._finish()
        return self.unit_so_far

    @property
    def open(self) -> torch.Tensor:
        """Where the problem itself leaves the answer open: ties, thresholds hit exactly."""
        self._finish()
        if self.runs is None or self.least is not None:
            return torch.zeros(self.reference.shape, dtype=torch.bool)
        return self.runs.changed(self.output)

    @property
    def own_error(self) -> float:
        """The largest error of the reference, in units."""
        return self._own(self.unit)

    @property
    def most_own_error(self) -> float:
        """At most this is the largest error of the reference, by the runs so far."""
        return self._own(self.unit_so_far)

    def _own(self, unit: torch.Tensor) -> float:
        if self.least is None or not unit.numel():
            return 0.0
        return float(torch.nan_to_num(self._off() / unit, nan=0.0, posinf=0.0).max())

    def _off(self) -> torch.Tensor:
        return (self.reference.double() - self.exact).abs()

    def _finish(self) -> None:
        if self.runs is not None:
            self.runs.all()


@dataclass(slots=True)
class Case:
    """One set of inputs with everything that is known of its right answer."""

    number: int
    family: str
    seed: int
    inputs: Values
    answers: list[Answer]
    structure: object
    resized: bool = False
    layout: str = "contiguous"
    poisoned: list[torch.Tensor] = field(default_factory=list)
    """For NaN and infinity: per output, where the answer depends on what was put in."""
    free: list[torch.Tensor] = field(default_factory=list)
    """Per output, where the answer is finite by convention; see `conventions`."""
    lenient: bool = False
    """A poisoned weight may spoil what it is multiplied by zero for."""
    length: int = 0
    """How many numbers meet in one output; 0: as many as for the problem's own inputs, or nobody has
    asked."""
    size: int = 0
    """What the size has become that stands alone; 0: none does."""
    group: int = -1
    """Which of the problem's sizes has grown; -1: none, or all; -2: one, out of its turn."""

    @property
    def own_error(self) -> float:
        """The reference's own error, in units."""
        return max((item.own_error for item in self.answers), default=0.0)


def kind_of(leaf: object) -> str:
    """What sort of value an output is: a tensor, an array, or a plain number."""
    if isinstance(leaf, torch.Tensor):
        return "torch"
    if mindspore_kit.is_tensor(leaf):
        return "mindspore"
    return "numpy" if type(leaf).__module__ == "numpy" else "plain"


def structure_of(value: object) -> object:
    """Nesting without contents, to compare two answers by."""
    if isinstance(value, list | tuple):
        return [structure_of(item) for item in value]
    if isinstance(value, dict):
        return {str(key): structure_of(item) for key, item in value.items()}
    return "None" if value is None else "*"
