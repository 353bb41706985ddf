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

from torchstone.kernels.harness.inputs.cases import Answer, Case, Rounding, kind_of, structure_of
from torchstone.kernels.harness.reference.conventions import free_places
from torchstone.kernels.harness.reference.perturbations import (
    Asked,
    Perturbations,
    largest,
    rounding,
)
from torchstone.kernels.harness.reference.running import (
    ProblemError,
    Reference,
    Values,
    as_tensor,
    doubled,
    is_float,
    leaves_of,
    like,
    rebuilt,
)

_LONGEST = 65536
_LOW_UNITS = 4.0
_SPREAD_PLACES = 2
"""Elements of an input whose reach is looked at: one is as a rule like the other."""


class Oracle:
    """Answers questions about one problem."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.scales: list[float] = []
        self.length = 1
        self.double = True
        self.attends = False
        """The reference calls torch's attention."""

    def outputs(self, inputs: Values, seed: int, double: bool = False) -> list[torch.Tensor]:
        """The outputs as tensors; a ProblemError for what cannot be compared."""
        given = doubled(inputs) if double else inputs
        found = self.reference.run(self.reference.model(seed, double), given, double=double)
        return _comparable(leaves_of(found))

    def exact(self, inputs: Values, seed: int, like: list[torch.Tensor]) -> list[torch.Tensor]:
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
        self, number: int, family: str, seed: int, inputs: Values, *, perturb: bool = True
    ) -> Case:
        """Everything about the right answer to these inputs."""
        model = self.reference.model(seed)
        raw = self.reference.run(model, inputs)
        leaves = leaves_of(raw)
        reference = _comparable(leaves)
        exact = self.exact(inputs, seed, reference)
        formats = [_format(leaf, given) for leaf, given in zip(leaves, reference, strict=True)]
        kept = None if self.reference.is_heavy else self.reference.model(seed, self.double)
        asked = Asked(self.reference, seed, inputs, self.double, kept)
        runs = Perturbations(asked, formats, exact) if perturb else None
        answers = []
        for i, (given, right) in enumerate(zip(reference, exact, strict=True)):
            right = right.double() if given.is_floating_point() else given
            least = self._rounding_of(i, formats[i]) if given.is_floating_point() else None
            answers.append(Answer(i, given, right, least, runs, kind_of(leaves[i])))
        free = free_places(self.reference, inputs, seed, reference, self.attends)
        return Case(number, family, seed, inputs, answers, structure_of(raw), free=free)

    def _rounding_of(self, index: int, dtype: torch.dtype) -> Rounding:
        """What rounding the answer itself does."""
        u, floor = rounding(dtype), tiny_of(dtype)
        rounds_steps = self.double and self.reference.framework in ("torch", "numpy")
        if not rounds_steps:  # what happens on the way is not seen: at most what comes out
            floor += u * (self.scales[index] if index < len(self.scales) else 0.0) / 2
        return Rounding(u, floor)

    def measure(self, cases: list[Case]) -> None:
        """Scale of the outputs and length of the sums, from the problem's own inputs."""
        count = len(cases[0].answers)
        self.scales = [
            max((largest(case.answers[i].exact) for case in cases), default=0.0)
            for i in range(count)
        ]
        self.length = self.length_of(cases[0].inputs, cases[0].seed)

    def length_of(self, inputs: Values, seed: int) -> int:
        """How many numbers of one input meet in one output, at most: counted with gradients."""
        sizes = [t.numel() for leaf in leaves_of(inputs) if (t := as_tensor(leaf)) is not None]
        guess = min(max(sizes, default=1), 4096)
        if self.reference.framework == "numpy":
            return min(self._spread(inputs, seed) or guess, _LONGEST)
        if self.reference.framework != "torch" or not self.double:
            return guess
        given = doubled(inputs)
        leaves = [
            leaf.clone().requires_grad_() if is_float(leaf) else leaf for leaf in leaves_of(given)
        ]
        model = copy.deepcopy(self.reference.model(seed, True))
        weights = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
        followed = [leaf for leaf in leaves if is_float(leaf)] + weights
        longest = 0
        try:
            found = model(*rebuilt(given, leaves))
            for leaf in leaves_of(found):
                if not is_float(leaf) or not leaf.requires_grad:
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

    def _spread(self, inputs: Values, seed: int) -> int:
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


def _comparable(leaves: Values) -> list[torch.Tensor]:
    """Outputs as tensors; a ProblemError for what cannot be compared."""
    tensors = [as_tensor(leaf) for leaf in leaves]
    if not tensors:
        raise ProblemError("the model gives no output")
    if any(item is None for item in tensors):
        raise ProblemError("the model gives something that is no tensor and no number")
    if any(item is not None and item.is_complex() for item in tensors):
        raise ProblemError("the model gives complex numbers, which have no order: return "
                           "torch.view_as_real of them")  # fmt: skip
    return [item for item in tensors if item is not None]


def _format(leaf: object, given: torch.Tensor) -> torch.dtype:
    """The format that an output is computed in: a Python number comes out of single precision."""
    plain = kind_of(leaf) == "plain" and given.is_floating_point()
    return torch.float32 if plain else given.dtype


def tiny_of(dtype: torch.dtype) -> float:
    """The smallest unit of a format, below which nothing is told apart.

    Devices and vectorised functions give zero for numbers below the smallest normal one; eight units,
    which are always allowed, are as much. Half precision keeps its small numbers everywhere.
    """
    info = torch.finfo(dtype)
    if dtype == torch.float16:
        return float(info.smallest_normal) * float(info.eps)
    return float(info.smallest_normal) / 8


def reduced(inputs: Values) -> Values:
    """Single-precision inputs rounded to the ten bits that TF32 and fp16 keep."""

    def one(leaf: object) -> object:
        tensor = as_tensor(leaf)
        if tensor is None or tensor.dtype != torch.float32 or not hasattr(leaf, "dtype"):
            return leaf
        bits = tensor.contiguous().view(torch.int32)
        rounded = ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
        return like(leaf, rounded)

    return list(rebuilt(inputs, [one(leaf) for leaf in leaves_of(inputs)]))
