"""What rounding does to every element of an answer, found out as far as a judgement needs it.

The oracle runs again on inputs and weights that are off by at most one rounding, with every step of the
way off by as much (`rounded_steps`). The root mean square over all such runs is the sensitivity of an
element. Each run only adds to it, so what is known after a few of them is a bound from below: an answer
that stays within that is right, whatever the other runs would show.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch

from torchstone.kernels.harness.reference.rounded_steps import Factors, RoundedSteps, rounded_array
from torchstone.kernels.harness.reference.running import (
    LOW,
    Reference,
    Values,
    as_tensor,
    doubled,
    is_float,
    leaves_of,
    like,
    rebuilt,
)

PERTURBATIONS = 6
"""Runs for one case, at most."""


def rounding(dtype: torch.dtype) -> float:
    """Half an ulp of one."""
    return torch.finfo(dtype).eps / 2


@dataclass(frozen=True, slots=True)
class Asked:
    """What the oracle was asked: inputs, a model, and in which precision it runs."""

    reference: Reference
    seed: int
    inputs: Values
    double: bool
    kept: object = None
    """The model itself, unless it is so large that it is made again when it is needed."""

    @property
    def model(self) -> object:
        return self.reference.model(self.seed, self.double) if self.kept is None else self.kept

    @property
    def rounds_steps(self) -> bool:
        """The steps of the reference can be rounded one by one."""
        return self.double and self.reference.framework in ("torch", "numpy")


class Perturbations:
    """What off-by-a-rounding runs have done to each output so far."""

    def __init__(self, asked: Asked, formats: list[torch.dtype], exact: list[torch.Tensor]) -> None:
        self._asked, self._formats, self._exact = asked, formats, exact
        floats = [item for item in formats if item.is_floating_point]
        self._size = max(map(rounding, floats), default=rounding(torch.float32))
        self._whole = len(floats) < len(formats)
        self._squares: dict[int, torch.Tensor] = {}
        self._changed: dict[int, torch.Tensor] = {}
        self.done = 0
        """Runs so far."""

    def once_more(self) -> bool:
        """One run more; False when all have been made."""
        if self.done == PERTURBATIONS:
            return False
        generator = torch.Generator().manual_seed(self.done)
        # integers: ties among zeros break only under an absolute shift
        absolute = self._whole and self.done % 2 == 1
        self.done += 1
        for i, new in enumerate(self._outputs(generator, absolute)):
            old = self._exact[i]
            if new.shape != old.shape:
                continue
            if self._formats[i].is_floating_point:
                square = (new.double() - old.double()).square()
                self._squares[i] = self._squares[i] + square if i in self._squares else square
            else:
                self._changed[i] = self.changed(i) | (new != old)
        return True

    def all(self) -> None:
        """Make all runs that are left."""
        while self.once_more():
            pass

    def sensitivity(self, output: int) -> torch.Tensor:
        """Of every element, by the runs so far; never more than by all of them."""
        if output not in self._squares:
            return torch.zeros(self._exact[output].shape, dtype=torch.float64)
        return (self._squares[output] / PERTURBATIONS).sqrt() * 2

    def changed(self, output: int) -> torch.Tensor:
        """Where a whole number became another one in any run so far."""
        if output not in self._changed:
            return torch.zeros(self._exact[output].shape, dtype=torch.bool)
        return self._changed[output]

    def _outputs(self, generator: torch.Generator, absolute: bool) -> list[torch.Tensor]:
        asked = self._asked
        given = doubled(asked.inputs) if asked.double else asked.inputs
        leaves = [shifted(leaf, self._size, generator, absolute) for leaf in leaves_of(given)]
        model = asked.model
        if asked.double:
            model = _shaken(model, self._size, generator)
        else:
            leaves = [_cast(new, old) for new, old in zip(leaves, leaves_of(given), strict=True)]
        steps = self._rounded_steps(generator)
        if steps is not None and asked.reference.framework == "numpy":
            leaves = [rounded_array(leaf, steps.factors) for leaf in leaves]
        found = asked.reference.run(model, rebuilt(given, leaves), double=asked.double, mode=steps)
        return [item for item in map(as_tensor, leaves_of(found)) if item is not None]

    def _rounded_steps(self, generator: torch.Generator) -> RoundedSteps | None:
        if not self._asked.rounds_steps:
            return None
        formats = (dtype for dtype in LOW if rounding(dtype) == self._size)
        return RoundedSteps(Factors(self._size, next(formats, torch.float32), generator))


def shifted(leaf: object, size: float, generator: torch.Generator, absolute: bool) -> object:
    """A floating leaf whose elements are off by at most `size`, relative or of its largest."""
    tensor = as_tensor(leaf)
    if tensor is None or not tensor.is_floating_point() or not hasattr(leaf, "dtype"):
        return leaf
    if tensor.numel() > REPEATED and not absolute:
        return like(leaf, _shifted_by_blocks(tensor, size, generator))
    noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 2 - 1
    if absolute:
        moved = tensor + noise * size * max(largest(tensor), 1e-30)
    else:
        moved = tensor * (1 + noise * size)
    return like(leaf, moved)


REPEATED = 1_048_573
"""Elements above which noise is drawn once and repeated: a prime, so that no two rows of a matrix get it alike. Drawing
noise for every weight of a large layer took longer than all runs of the layer."""


def _shifted_by_blocks(
    tensor: torch.Tensor, size: float, generator: torch.Generator
) -> torch.Tensor:
    noise = torch.rand(REPEATED, generator=generator, dtype=torch.float64) * 2 - 1
    factors = 1 + noise * size
    moved = tensor.to(torch.float64, copy=True, memory_format=torch.contiguous_format)
    for part in moved.view(-1).split(REPEATED):
        part.mul_(factors[: part.numel()])
    return moved


def largest(tensor: torch.Tensor) -> float:
    if not tensor.is_floating_point():
        return 0.0
    finite = tensor[torch.isfinite(tensor)]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _shaken(model: Any, u: float, generator: torch.Generator) -> object:
    """The model with weights and statistics that are off by at most u."""
    state = model.state_dict() if isinstance(model, torch.nn.Module) else {}
    if not any(is_float(item) for item in state.values()):
        return model
    moved = copy.deepcopy(model)
    with torch.no_grad():
        for item in moved.state_dict().values():
            item.copy_(shifted(item, u, generator, False))
    return moved


def _cast(new: Any, old: Any) -> object:
    return new.to(old.dtype) if isinstance(old, torch.Tensor) else new
