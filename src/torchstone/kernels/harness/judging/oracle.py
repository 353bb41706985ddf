"""The oracle: what the right answer is, and how far from it a right kernel may be.

The answer is the problem run in double precision. The unit of error is what rounding does to it,
element by element: `u·|answer| + sensitivity`, where u is half an ulp of the output's format, and
sensitivity is measured by running the oracle on inputs and weights that are off by at most u, with
every step of the way off by as much (`rounded_steps`). How many units are allowed follows from the
length of the sums, from the reference's own error, and from what rounding the inputs to ten bits
would cost: a right kernel may add in another order, but not compute in a lower format.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch

from torchstone.kernels.harness.inputs.cases import Answer, Case, kind_of, structure_of
from torchstone.kernels.harness.judging.conventions import free_places
from torchstone.kernels.harness.judging.reference import (
    LOW,
    ProblemError,
    Reference,
    as_tensor,
    doubled,
    leaves_of,
    like,
    rebuilt,
)
from torchstone.kernels.harness.judging.rounded_steps import Factors, RoundedSteps, rounded_array

PERTURBATIONS = 6
_LONGEST = 65536
_LOW_UNITS = 4.0
MOST_OWN_ERROR = 16.0
"""Units by which the reference itself may be off and excuse a whole family; the most seen on the
corpus is 13, an approximation of erf. An element that is off by more excuses itself alone."""
_SPREAD_PLACES = 2
"""Elements of an input whose reach is looked at: one is as a rule like the other."""


def rounding(dtype: torch.dtype) -> float:
    """Half an ulp of one."""
    return torch.finfo(dtype).eps / 2


def shifted(leaf: Any, size: float, generator: torch.Generator, absolute: bool) -> Any:
    """A floating leaf whose elements are off by at most `size`, relative or of its largest."""
    tensor = as_tensor(leaf)
    if tensor is None or not tensor.is_floating_point() or not hasattr(leaf, "dtype"):
        return leaf
    noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 2 - 1
    if absolute:
        moved = tensor + noise * size * max(_largest(tensor), 1e-30)
    else:
        moved = tensor * (1 + noise * size)
    return like(leaf, moved)


class Oracle:
    """Answers questions about one problem."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.scales: list[float] = []
        self.length = 1
        self.double = True
        self.attends = False
        """The reference calls torch's attention."""

    def outputs(self, inputs: list[Any], seed: int, double: bool = False) -> list[torch.Tensor]:
        """The outputs as tensors; a ProblemError for what cannot be compared."""
        given = doubled(inputs) if double else inputs
        found = self.reference.run(self.reference.model(seed, double), given, double=double)
        tensors = [as_tensor(leaf) for leaf in leaves_of(found)]
        if not tensors:
            raise ProblemError("the model gives no output")
        if any(item is None for item in tensors):
            raise ProblemError("the model gives something that is no tensor and no number")
        if any(item is not None and item.is_complex() for item in tensors):
            raise ProblemError("the model gives complex numbers, which have no order: return "
                               "torch.view_as_real of them")  # fmt: skip
        return [item for item in tensors if item is not None]

    def exact(self, inputs: list[Any], seed: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
        """The oracle's outputs; the reference's own where the problem cannot run in double."""
        if self.double:
            try:
                found = self.outputs(inputs, seed, double=True)
            except (RuntimeError, TypeError, NotImplementedError):
                self.double = False
            else:
                if all(a.shape == b.shape for a, b in zip(found, like, strict=True)):
                    return found
                self.double = False
        return like

    def case(
        self, number: int, family: str, seed: int, inputs: list[Any], *, perturb: bool = True
    ) -> Case:
        """Everything about the right answer to these inputs."""
        weights = seed
        raw = self.reference.run(self.reference.model(weights), inputs)
        leaves = leaves_of(raw)
        reference = self.outputs(inputs, weights)
        exact = self.exact(inputs, weights, reference)
        formats = [self._format(leaf, given) for leaf, given in zip(leaves, reference, strict=True)]
        moved = self._moved(inputs, weights, formats, exact) if perturb else None
        answers = []
        for i, (given, right) in enumerate(zip(reference, exact, strict=True)):
            answers.append(self._answer(i, leaves[i], given, right, moved, formats[i]))
        free = free_places(self.reference, inputs, weights, reference, self.attends)
        return Case(number, family, seed, inputs, answers, structure_of(raw), free=free)

    def _answer(
        self, index: int, leaf: Any, given: torch.Tensor, right: torch.Tensor, moved: Any,
        dtype: torch.dtype,
    ) -> Answer:  # fmt: skip
        stride = tuple(given.stride())
        kind = kind_of(leaf)
        if not given.is_floating_point():
            never = torch.zeros(given.shape, dtype=torch.bool)
            changed = never if moved is None else moved[1][index]
            return Answer(given, given, torch.zeros(given.shape), changed, 0.0, stride, kind)
        right = right.double()
        unit = self._unit(index, dtype, right, None if moved is None else moved[0][index])
        error = torch.nan_to_num((given.double() - right).abs() / unit, nan=0.0, posinf=0.0)
        unit = unit * (error / MOST_OWN_ERROR).clamp(min=1)
        own = min(float(error.max()), MOST_OWN_ERROR) if error.numel() else 0.0
        closed = torch.zeros(given.shape, dtype=torch.bool)
        return Answer(given, right, unit, closed, own, stride, kind)

    def _format(self, leaf: Any, given: torch.Tensor) -> torch.dtype:
        """The format that an output is computed in: a Python number comes out of single precision."""
        plain = kind_of(leaf) == "plain" and given.is_floating_point()
        return torch.float32 if plain else given.dtype

    def _unit(
        self, index: int, dtype: torch.dtype, right: torch.Tensor, moved: torch.Tensor | None
    ) -> torch.Tensor:
        """What one rounding does to every element."""
        u = rounding(dtype)
        unit = u * right.abs()
        if not self.rounds_steps:  # what happens on the way is not seen: at most what comes out
            unit = unit + u * (self.scales[index] if index < len(self.scales) else 0.0) / 2
        if moved is not None:
            unit = unit + torch.nan_to_num(moved, nan=0.0)
        return torch.nan_to_num(unit, nan=0.0) + tiny_of(dtype)

    @property
    def rounds_steps(self) -> bool:
        """The steps of the reference can be rounded one by one."""
        return self.double and self.reference.framework in ("torch", "numpy")

    def _moved(
        self, inputs: list[Any], seed: int, formats: list[torch.dtype],
        exact: list[torch.Tensor],
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:  # fmt: skip
        """Root mean square of what off-by-u inputs do to floats; where integers change at all."""
        floats = [item for item in formats if item.is_floating_point]
        u = max((rounding(dtype) for dtype in floats), default=rounding(torch.float32))
        squares = [torch.zeros(item.shape, dtype=torch.float64) for item in exact]
        changed = [torch.zeros(item.shape, dtype=torch.bool) for item in exact]
        whole = any(not item.is_floating_point for item in formats)
        for turn in range(PERTURBATIONS):
            generator = torch.Generator().manual_seed(turn)
            # integers: ties among zeros break only under an absolute shift
            absolute = whole and turn % 2 == 1
            found = self._shifted_outputs(inputs, seed, u, generator, absolute)
            for i, (new, old) in enumerate(zip(found, exact, strict=True)):
                if new.shape != old.shape:
                    continue
                if formats[i].is_floating_point:
                    squares[i] += (new.double() - old.double()).square()
                else:
                    changed[i] |= new != old
        return [(item / PERTURBATIONS).sqrt() * 2 for item in squares], changed

    def _shifted_outputs(
        self, inputs: list[Any], seed: int, u: float, generator: torch.Generator, absolute: bool
    ) -> list[torch.Tensor]:
        given = doubled(inputs) if self.double else inputs
        leaves = [shifted(leaf, u, generator, absolute) for leaf in leaves_of(given)]
        model = self.reference.model(seed, self.double)
        if self.double:
            model = _shaken(model, u, generator)
        else:
            leaves = [_cast(new, old) for new, old in zip(leaves, leaves_of(given), strict=True)]
        steps = self._rounding_steps(u, generator)
        if steps is not None and self.reference.framework == "numpy":
            leaves = [rounded_array(leaf, steps.factors) for leaf in leaves]
        found = self.reference.run(model, rebuilt(given, leaves), double=self.double, mode=steps)
        return [item for item in map(as_tensor, leaves_of(found)) if item is not None]

    def _rounding_steps(self, u: float, generator: torch.Generator) -> RoundedSteps | None:
        if not self.rounds_steps:
            return None
        formats = (dtype for dtype in LOW if rounding(dtype) == u)
        return RoundedSteps(Factors(u, next(formats, torch.float32), generator))

    def measure(self, cases: list[Case]) -> None:
        """Scale of the outputs and length of the sums, from the problem's own inputs."""
        count = len(cases[0].answers)
        self.scales = [
            max((_largest(case.answers[i].exact) for case in cases), default=0.0)
            for i in range(count)
        ]
        self.length = self.length_of(cases[0].inputs, cases[0].seed)

    def length_of(self, inputs: list[Any], seed: int) -> int:
        """How many numbers of one input meet in one output, at most: counted with gradients."""
        sizes = [t.numel() for leaf in leaves_of(inputs) if (t := as_tensor(leaf)) is not None]
        guess = min(max(sizes, default=1), 4096)
        if self.reference.framework == "numpy":
            return min(self._spread(inputs, seed) or guess, _LONGEST)
        if self.reference.framework != "torch" or not self.double:
            return guess
        given = doubled(inputs)
        leaves = [
            leaf.clone().requires_grad_() if _is_float(leaf) else leaf for leaf in leaves_of(given)
        ]
        model = copy.deepcopy(self.reference.model(seed, True))
        weights = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
        followed = [leaf for leaf in leaves if _is_float(leaf)] + weights
        longest = 0
        try:
            found = model(*rebuilt(given, leaves))
            for leaf in leaves_of(found):
                if not _is_float(leaf) or not leaf.requires_grad:
                    continue
                flat = leaf.reshape(-1)
                for place in {0, flat.numel() // 2, flat.numel() - 1}:
                    grads: tuple[Any, ...] = torch.autograd.grad(
                        flat[place], followed, retain_graph=True, allow_unused=True
                    )
                    counts = [int((g != 0).sum()) for g in grads if g is not None]
                    longest = max([longest, *counts])
        except (RuntimeError, TypeError, IndexError):
            return guess
        return min(longest or guess, _LONGEST)

    def _spread(self, inputs: list[Any], seed: int) -> int:
        """How many numbers of one input meet in one output on average: by NaN put into some of them."""
        longest = 0
        leaves = leaves_of(inputs)
        for number, leaf in enumerate(leaves):
            tensor = as_tensor(leaf)
            if tensor is None or not hasattr(leaf, "shape") or not tensor.is_floating_point():
                continue
            places = torch.randperm(tensor.numel(), generator=torch.Generator().manual_seed(0))
            for place in places[:_SPREAD_PLACES].tolist():
                spoilt = tensor.clone().contiguous()
                spoilt.reshape(-1)[place] = math.nan
                given = [*leaves[:number], like(leaf, spoilt), *leaves[number + 1 :]]
                for found in self.outputs(rebuilt(inputs, given), seed):
                    hit = int(torch.isnan(found).sum()) if found.is_floating_point() else 0
                    longest = max(longest, hit * tensor.numel() // max(found.numel(), 1))
        return longest

    def allowed(
        self, own_error: float, reduced_error: float, dtype: torch.dtype, length: int = 0
    ) -> float:
        """How many units a right kernel may be off; `length` is 0 for the problem's own sizes."""
        if dtype in (torch.float16, torch.bfloat16):
            return max(_LOW_UNITS, 2 * own_error)  # sums are kept in single precision
        sums = 8 + 2 * math.sqrt(length or self.length)
        capped = min(sums, max(8.0, reduced_error / 3)) if reduced_error else sums
        return max(capped, 2 * own_error)


def _is_float(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_floating_point()


def _largest(tensor: torch.Tensor) -> float:
    if not tensor.is_floating_point():
        return 0.0
    finite = tensor[torch.isfinite(tensor)]
    return float(finite.abs().max()) if finite.numel() else 0.0


def tiny_of(dtype: torch.dtype) -> float:
    """The smallest unit of a format, below which nothing is told apart.

    Devices and vectorised functions give zero for numbers below the smallest normal one; eight units,
    which are always allowed, are as much. Half precision keeps its small numbers everywhere.
    """
    info = torch.finfo(dtype)
    if dtype == torch.float16:
        return float(info.smallest_normal) * float(info.eps)
    return float(info.smallest_normal) / 8


def _shaken(model: Any, u: float, generator: torch.Generator) -> Any:
    """The model with weights and statistics that are off by at most u."""
    state = model.state_dict() if isinstance(model, torch.nn.Module) else {}
    if not any(_is_float(item) for item in state.values()):
        return model
    moved = copy.deepcopy(model)
    with torch.no_grad():
        for item in moved.state_dict().values():
            item.copy_(shifted(item, u, generator, False))
    return moved


def _cast(new: Any, old: Any) -> Any:
    return new.to(old.dtype) if isinstance(old, torch.Tensor) else new


def reduced(inputs: list[Any]) -> list[Any]:
    """Single-precision inputs rounded to the ten bits that TF32 and fp16 keep."""

    def one(leaf: Any) -> Any:
        tensor = as_tensor(leaf)
        if tensor is None or tensor.dtype != torch.float32 or not hasattr(leaf, "dtype"):
            return leaf
        bits = tensor.contiguous().view(torch.int32)
        rounded = ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
        return like(leaf, rounded)

    return list(rebuilt(inputs, [one(leaf) for leaf in leaves_of(inputs)]))
