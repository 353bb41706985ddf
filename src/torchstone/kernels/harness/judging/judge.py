"""A candidate's answer against what is right: form, NaN pattern, whole numbers, error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from torchstone.kernels.harness.calling.unwritten import never_written
from torchstone.kernels.harness.inputs.cases import Answer, Case
from torchstone.kernels.harness.reference.running import as_tensor, leaves_of
from torchstone.kernels.messages.facts import OutputFacts, Wrong
from torchstone.kernels.sessions.calls import POISONED

_MOST_SIDE = 24


@dataclass(frozen=True, slots=True)
class Choice:
    """An output of places: which input it chooses from, along which side."""

    output: int
    leaf: int
    dim: int
    largest: bool


def find_choices(case: Case, leaves: Sequence[object]) -> list[Choice]:
    """Outputs of places that pick the largest or the smallest of an input."""
    found = []
    for number, answer in enumerate(case.answers):
        if answer.reference.dtype not in (torch.int64, torch.int32):
            continue
        for leaf, value in enumerate(leaves):
            tensor = as_tensor(value)
            if tensor is None or not tensor.is_floating_point():
                continue
            found += [
                Choice(number, leaf, dim, largest)
                for dim in range(tensor.dim())
                for largest in (True, False)
                if _chooses(tensor, answer.reference, dim, largest)
            ]
    return found


def _chooses(values: torch.Tensor, places: torch.Tensor, dim: int, largest: bool) -> bool:
    picked = picked_by(values, places, dim)
    if picked is None or not picked.numel():
        return False
    count = picked.shape[dim]
    if count > values.shape[dim]:
        return False
    return torch.equal(picked, values.topk(count, dim=dim, largest=largest).values)


def picked_by(values: torch.Tensor, places: torch.Tensor, dim: int) -> torch.Tensor | None:
    """The values at these places along a side; None where they do not fit."""
    if places.dim() == values.dim() - 1:
        places = places.unsqueeze(dim)
    if places.dim() != values.dim() or not places.numel():
        return None
    sides = [i for i in range(values.dim()) if i != dim]
    if any(values.shape[i] != places.shape[i] for i in sides):
        return None
    if int(places.min()) < 0 or int(places.max()) >= values.shape[dim]:
        return None
    return values.gather(dim, places.long())


def is_within(answer: Answer, got: torch.Tensor, allowed: float) -> bool:
    """Whether no element is off by more, by what is known of the unit so far."""
    if answer.least is None or not got.numel():
        return True
    # a NaN is not off by anything: it is looked at apart
    return not bool((_off(answer, got) > allowed * answer.unit_so_far).any())


def _off(answer: Answer, got: torch.Tensor) -> torch.Tensor:
    return (got.double() - answer.exact).abs()


def judge_output(
    case: Case, number: int, got: torch.Tensor, allowed: float, chosen: torch.Tensor | None
) -> OutputFacts:
    """What is wrong with one output of the right shape and type."""
    answer = case.answers[number]
    if not got.numel():
        return OutputFacts()
    depends = case.poisoned[number] if case.poisoned else torch.ones(got.shape, dtype=torch.bool)
    if not answer.reference.is_floating_point():
        return OutputFacts(whole=_whole(case, answer, got, chosen, depends))
    if not case.poisoned:
        largest = float((_off(answer, got) / answer.unit_so_far).max())
        if largest <= allowed:  # not so for a NaN: then all that is looked at below is finite
            return OutputFacts(largest)
    unwritten = never_written(got)
    got = got.double()
    never = _first_of(unwritten, got, answer.exact)
    if never is not None:
        never = replace(never, last=[int(i) for i in unwritten.nonzero()[-1]])
    right = answer.reference.double() if case.poisoned else answer.exact
    # products taken in another order may make a NaN of an infinite weight
    agreed = (answer.reference.double() == answer.exact) & (not case.lenient)
    wrong = _pattern(case.family, got, right, depends, agreed)
    wrong &= ~unwritten  # a finding of its own
    # where an infinity makes no number in double precision, the reference's own is a matter of its format
    if case.poisoned:
        wrong &= ~(torch.isnan(answer.exact) & depends & ~torch.isfinite(got))
    if case.lenient:
        wrong &= depends
    convention = wrong & _by_convention(case, number, got)
    wrong &= ~convention
    both = torch.isfinite(got) & torch.isfinite(right) & torch.isfinite(answer.exact)
    units = torch.where(
        both, (got - answer.exact).abs() / answer.unit_so_far, torch.zeros(()).double()
    )
    return OutputFacts(
        float(units.max()),
        never,
        _first_of(wrong, got, right),
        error=_error(units, got, answer.exact, allowed),
        convention=int(convention.sum()),
    )


def _error(
    units: torch.Tensor, got: torch.Tensor, exact: torch.Tensor, allowed: float
) -> Wrong | None:
    """Elements that are off by more than is allowed."""
    far = units > allowed
    found = _first_of(far, got, exact)
    if found is None:
        return None
    first = int(far.reshape(-1).nonzero()[0])
    return replace(
        found, here=float(units.reshape(-1)[first]), units=float(units.max()), allowed=allowed,
        map=_map(far), histogram=_histogram(units),
    )  # fmt: skip


def _by_convention(case: Case, number: int, got: torch.Tensor) -> torch.Tensor:
    """Where the answer is not finite and need not be: torch's is by its own choice, or nothing is
    reduced."""
    if any(t.numel() == 0 for leaf in leaves_of(case.inputs) if (t := as_tensor(leaf)) is not None):
        return ~torch.isfinite(got)
    if not case.free:
        return torch.zeros(got.shape, dtype=torch.bool)
    return ~torch.isfinite(got) & case.free[number]


def _pattern(
    family: str,
    got: torch.Tensor,
    right: torch.Tensor,
    depends: torch.Tensor,
    agreed: torch.Tensor,
) -> torch.Tensor:
    """Where finite and not finite do not agree as they must.

    An infinity on which the reference and the oracle agree is an answer like any other: neither a
    NaN nor the other infinity will do.
    """
    invented = torch.isfinite(right) & ~torch.isfinite(got)
    if family == "nan":
        # a NaN that comes out where one went in is never wrong, even if the reference drops it
        return (invented & ~depends) | (torch.isnan(right) & depends & ~torch.isnan(got))
    wrong = torch.isfinite(got) | (agreed & (got != right))
    return invented | (torch.isinf(right) & depends & wrong)


def _longest_side(case: Case) -> int:
    tensors = [t for leaf in leaves_of(case.inputs) if (t := as_tensor(leaf)) is not None]
    return max((side for tensor in tensors for side in tensor.shape), default=0)


def _whole(
    case: Case,
    answer: Answer,
    got: torch.Tensor,
    chosen: torch.Tensor | None,
    depends: torch.Tensor,
) -> Wrong | None:
    wrong = got != answer.reference
    if not bool(wrong.any()):
        return None
    if case.family == "nan":
        # where a NaN stands in an order is nobody's promise, but it stands somewhere in the line
        outside = (got < 0) & (answer.reference >= 0) | (got > _longest_side(case))
        wrong &= ~depends & ~answer.open | outside
    elif case.family in POISONED and chosen is None:
        return None
    elif chosen is not None:
        wrong &= ~chosen
    else:
        wrong &= ~answer.open
    found = _first_of(wrong, got.double(), answer.reference.double())
    return None if found is None else replace(found, map=_map(wrong))


def _first_of(wrong: torch.Tensor, got: torch.Tensor, right: torch.Tensor) -> Wrong | None:
    """The first of the wrong elements; None where there are none."""
    if not bool(wrong.any()):
        return None
    first = int(wrong.reshape(-1).nonzero()[0])
    # numpy's: torch's own loads a computer algebra system, which takes a second
    index = [int(part) for part in np.unravel_index(first, tuple(wrong.shape))]
    return Wrong(
        index, int(wrong.sum()), wrong.numel(),
        repr(float(got.reshape(-1)[first])), repr(float(right.reshape(-1)[first])),
    )  # fmt: skip


def _map(wrong: torch.Tensor) -> list[list[float]]:
    """The share of wrong elements over the output, coarse enough to draw."""
    if wrong.dim() == 0:
        grid = wrong.reshape(1, 1)
    elif wrong.dim() == 1:
        grid = wrong.reshape(1, -1)
    else:
        grid = wrong.reshape(-1, wrong.shape[-1])
    rows, columns = (min(side, _MOST_SIDE) for side in grid.shape)
    pooled = torch.nn.functional.adaptive_avg_pool2d(grid.double()[None], (rows, columns))[0]
    return [[float(value) for value in row] for row in pooled]


def _histogram(units: torch.Tensor) -> list[list[float]]:
    """How many elements have which error, by powers of ten of the unit."""
    powers = torch.log10(units.reshape(-1).clamp(min=1e-3, max=1e12)).floor()
    low, high = int(powers.min()), int(powers.max())
    return [[float(power), float((powers == power).sum())] for power in range(low, high + 1)]
