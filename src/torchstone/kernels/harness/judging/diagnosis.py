"""Why an answer is wrong, found by running: what the reference gives with one mistake made on purpose.

A wrong answer is compared with simple changes of the right one (a factor, an offset, another order)
and with the reference run once more with another axis, without its epsilon, without the maximum
subtracted, or in a lower precision. What fits is the likely cause; where nothing does, the places
of the wrong elements are what is left to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from torchstone.kernels.harness.inputs.cases import Answer, Case
from torchstone.kernels.harness.reference.double_precision import reduced
from torchstone.kernels.harness.reference.running import Reference, Values, as_tensor, leaves_of
from torchstone.kernels.messages.facts import Cause
from torchstone.observe.operators import OperatorMode


@dataclass(frozen=True, slots=True)
class _Step:
    """One operator of the reference and what it is given."""

    func: Any
    args: list[Any]
    kwargs: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.func._schema.name.rpartition("::")[2])

    def place_of(self, name: str) -> int:
        """Which positional argument has this name; -1 where none has."""
        names = [item.name for item in self.func._schema.arguments]
        return names.index(name) if name in names else -1

    def with_argument(self, at: int, value: object) -> object:
        """What the operator gives with one positional argument changed."""
        return self.func(*self.args[:at], value, *self.args[at + 1 :], **self.kwargs)

    def with_keyword(self, name: str, value: object) -> object:
        """What it gives with one keyword changed."""
        return self.func(*self.args, **{**self.kwargs, name: value})


Alter = Callable[[_Step], object]
"""Gives what an operator gives with the mistake made; `NotImplemented` for operators without it."""
_CLOSE_UNITS = 512.0
"""Units of rounding within which an answer is the one with the mistake: a wrong axis or factor is
off by millions, a sum in another order by tens."""
_ALONG = frozenset("_softmax _log_softmax sum mean amax amin prod cumsum cumprod logsumexp var std "
                   "linalg_vector_norm norm cummax cummin logcumsumexp argmax argmin".split())  # fmt: skip
_MOST_AXES = 4
_MOST_SHARE = 0.5
"""Of the places: what is wrong in more than half of them is no fault of a tail."""
_FOLLOWS = 0.5
"""The correlation of errors with the values from which on they are no rounding, which has none."""
_FEWEST = 16
"""Elements below which a correlation of this size is chance."""
_FAILED = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, ArithmeticError)


def causes_of(reference: Reference, case: Case, number: int, got: torch.Tensor) -> list[Cause]:
    """The likeliest cause of a wrong output: by its values or, where none is found, by its places."""
    answer = case.answers[number]
    wrong = _wrong(answer, got)
    if not bool(wrong.any()):
        return []
    by_value = next(filter(_finite, _by_value(reference, case, number, got.double())), None)
    found = by_value or next(_by_place(wrong), None)
    return [] if found is None else [found]


def _finite(cause: Cause) -> bool:
    """An infinite constant or factor explains nothing, and no message can carry it."""
    return math.isfinite(cause.value)


def _wrong(answer: Answer, got: torch.Tensor) -> torch.Tensor:
    exact = answer.exact.double()
    unit = _unit(answer)
    both = torch.isfinite(got) & torch.isfinite(exact)
    far = (got.double() - exact).abs() > _CLOSE_UNITS * unit
    return torch.where(both, far, torch.isfinite(got) != torch.isfinite(exact))


def _unit(answer: Answer) -> torch.Tensor:
    """What counts as equal: a rounding for floats, half a step for whole numbers."""
    if answer.reference.is_floating_point():
        return answer.unit
    return torch.full(answer.reference.shape, 0.5 / _CLOSE_UNITS, dtype=torch.float64)


def _equals(got: torch.Tensor, other: torch.Tensor | None, answer: Answer) -> bool:
    """Equal up to rounding, and not finite in the same places."""
    if other is None or other.shape != got.shape:
        return False
    other = other.double()
    both = torch.isfinite(got) & torch.isfinite(other)
    if not torch.equal(torch.isfinite(got), torch.isfinite(other)) or not bool(both.any()):
        return False
    scale = _unit(answer) + 2.0**-24 * other.abs().nan_to_num(posinf=0.0)
    return bool(((got - other).abs() <= _CLOSE_UNITS * scale)[both].all())


def _by_value(reference: Reference, case: Case, number: int, got: torch.Tensor) -> Iterator[Cause]:
    answer = case.answers[number]
    yield from _uncomputed(case, got)
    yield from _mistaken(reference, case, number, got)
    yield from _by_one_number(answer, got)
    yield from _reordered(answer, got)
    yield from _lower_precision(reference, case, number, got)


def _uncomputed(case: Case, got: torch.Tensor) -> Iterator[Cause]:
    """One number everywhere, or an input."""
    if got.numel() > 1 and bool((got == got.reshape(-1)[0]).all()):
        yield Cause("constant", value=float(got.reshape(-1)[0]))
    for place, leaf in enumerate(leaves_of(case.inputs)):
        tensor = as_tensor(leaf)
        if tensor is not None and tensor.shape == got.shape and torch.equal(tensor.double(), got):
            yield Cause("input", place=place)


def _by_one_number(answer: Answer, got: torch.Tensor) -> Iterator[Cause]:
    """All values by one factor too large, or by one offset."""
    exact = answer.exact.double()
    used = torch.isfinite(exact) & torch.isfinite(got) & (exact != 0)
    if int(used.sum()) < 2 or not bool(torch.isfinite(got).all()):
        return
    factor = float((got[used] / exact[used]).median())
    if factor not in (0.0, 1.0) and _equals(got, exact * factor, answer):
        yield Cause("sign") if abs(factor + 1) < 1e-4 else Cause("factor", factor)
    offset = float((got - exact)[used].median())
    if offset and _equals(got, exact + offset, answer):
        yield Cause("offset", value=offset)


def _reordered(answer: Answer, got: torch.Tensor) -> Iterator[Cause]:
    """The right values in other places."""
    exact = answer.exact.double()
    if got.dim() >= 2 and _equals(got, exact.mT, answer):
        yield Cause("transposed")
    if got.dim() >= 2 and got.shape[-1] != got.shape[-2]:
        turned = exact.mT.reshape(exact.shape)
        if _equals(got, turned, answer):
            yield Cause("transposed")
    for axis in range(got.dim()):
        if _equals(got, exact.flip(axis), answer):
            yield Cause("flipped", axis=axis)
        for step in (1, -1):
            if got.shape[axis] > 2 and _equals(got, exact.roll(step, axis), answer):
                yield Cause("shifted", axis=axis, step=step)


class _Altered(OperatorMode):
    """The reference with a mistake in it; `changed` names the operators that it is made in."""

    def __init__(self, alter: Alter) -> None:
        super().__init__()
        self.alter = alter
        self.changed: list[str] = []

    def run(self, func: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        step = _Step(func, list(args), dict(kwargs))
        found = self.alter(step)
        if found is NotImplemented:
            return func(*args, **kwargs)
        self.changed.append(step.name.removeprefix("_"))
        return found


def _mistaken(reference: Reference, case: Case, number: int, got: torch.Tensor) -> Iterator[Cause]:
    """What the reference gives with one of the usual mistakes made in it."""
    if reference.framework != "torch":
        return
    tries: list[tuple[str, Alter]] = [
        *(("axis", _other_axis(shift)) for shift in range(1, _MOST_AXES)),
        ("correction", _other_correction),
        ("epsilon", _without_epsilon),
        ("maximum", _without_maximum),
        ("one pass", _in_one_pass),
    ]
    for code, alter in tries:
        mode = _Altered(alter)
        other = _outputs(reference, case, number, mode)
        if mode.changed and _equals(got, other, case.answers[number]):
            yield Cause(code, op=mode.changed[0])


def _outputs(
    reference: Reference,
    case: Case,
    number: int,
    mode: _Altered | None,
    inputs: Values | None = None,
) -> torch.Tensor | None:
    try:
        model = reference.model(case.seed)
        given = case.inputs if inputs is None else inputs
        if mode is None:
            found = reference.run(model, given)
        else:
            with mode:
                found = reference.run(model, given)
        return as_tensor(leaves_of(found)[number])
    except _FAILED:
        return None


def _other_axis(shift: int) -> Alter:
    def alter(step: _Step) -> object:
        at = step.place_of("dim")
        if step.name not in _ALONG or not 0 <= at < len(step.args):
            return NotImplemented
        sides, given = step.args[0].dim(), step.args[at]
        axes = given if isinstance(given, list) else [given]
        if sides < 2 or len(axes) != 1 or not isinstance(axes[0], int):
            return NotImplemented
        moved = (axes[0] + shift) % sides
        return step.with_argument(at, [moved] if isinstance(given, list) else moved)

    return alter


def _other_correction(step: _Step) -> object:
    if step.name not in ("var", "std", "var_mean", "std_mean") or "correction" not in step.kwargs:
        return NotImplemented
    given = 1 if step.kwargs["correction"] is None else step.kwargs["correction"]
    return step.with_keyword("correction", 0 if given else 1)


def _without_epsilon(step: _Step) -> object:
    at = step.place_of("eps")
    if at < 0:
        return NotImplemented
    if at < len(step.args):
        return step.with_argument(at, 0.0)
    return step.with_keyword("eps", 0.0)


def _without_maximum(step: _Step) -> object:
    args = step.args
    if step.name in ("_softmax", "softmax"):
        grown = args[0].exp()
        return grown / grown.sum(args[1], keepdim=True)
    if step.name in ("_log_softmax", "log_softmax"):
        return args[0] - args[0].exp().sum(args[1], keepdim=True).log()
    if step.name == "logsumexp":
        return args[0].exp().sum(args[1], keepdim=bool(args[2:] and args[2])).log()
    return NotImplemented


def _in_one_pass(step: _Step) -> object:
    args, kwargs = step.args, step.kwargs
    if step.name == "native_layer_norm":
        x, over = args[0], tuple(range(-len(args[1]), 0))
        mean = x.mean(over, keepdim=True)
        scale = (x.square().mean(over, keepdim=True) - mean.square() + args[4]).rsqrt()
        made = (x - mean) * scale
        made = made if args[2] is None else made * args[2]
        return (made if args[3] is None else made + args[3]), mean, scale
    if step.name != "var" or len(args) < 2 or args[1] is None:
        return NotImplemented
    x, given = args[0], kwargs.get("correction")
    count = x.numel() // max(x.mean(args[1]).numel(), 1)
    spread = x.square().mean(args[1], keepdim=True) - x.mean(args[1], keepdim=True).square()
    spread = spread * count / max(count - (1 if given is None else given), 1)
    return spread if kwargs.get("keepdim") else spread.squeeze(tuple(args[1]))


def _lower_precision(
    reference: Reference, case: Case, number: int, got: torch.Tensor
) -> Iterator[Cause]:
    """Errors of the size that fewer bits would cause, in most of the elements."""
    answer = case.answers[number]
    if answer.reference.dtype != torch.float32:
        return
    other = _outputs(reference, case, number, None, reduced(case.inputs))
    if other is None or not bool(torch.isfinite(got).all()):
        return
    errors = (got - answer.exact).abs() / answer.unit
    cost = float(((other.double() - answer.exact).abs() / answer.unit).median())
    size = float(errors.median())
    if cost <= 0 or bool(((got - answer.exact).abs() > 0.1 * _typical(answer.exact)).any()):
        return
    if not _goes_both_ways(answer.exact, got):
        return
    if cost / 16 <= size <= cost * 5:
        yield Cause("precision", format="float16 or TF32")
    elif cost * 5 < size <= cost * 40:
        yield Cause("precision", format="bfloat16")


def _goes_both_ways(exact: torch.Tensor, got: torch.Tensor) -> bool:
    """Whether errors do not follow the values: rounding goes both ways, a scale or a forgotten term
    does not."""
    both = torch.stack([(got - exact).reshape(-1), exact.reshape(-1)])
    if both.shape[1] < _FEWEST:
        return False
    return abs(float(torch.corrcoef(both)[0, 1].nan_to_num(nan=1.0))) < _FOLLOWS


def _typical(exact: torch.Tensor) -> float:
    return float(exact.square().mean().sqrt())


def _by_place(wrong: torch.Tensor) -> Iterator[Cause]:
    """Where the wrong elements lie, where that is not everywhere."""
    if bool(wrong.all()) or not wrong.dim():
        return
    found = []
    for axis in range(wrong.dim()):
        others = [side for side in range(wrong.dim()) if side != axis]
        hit = wrong.any(tuple(others)) if others else wrong
        places = hit.nonzero()[:, 0]
        first, last, size = int(places[0]), int(places[-1]), wrong.shape[axis]
        if len(places) < size and len(places) == last - first + 1:
            cause = Cause("range", axis=axis, first=first, last=last, size=size)
            found.append((len(places) / size, cause))
    flat = wrong.reshape(-1).nonzero()[:, 0]
    if wrong.dim() > 1 and int(flat[-1]) == wrong.numel() - 1:
        tail = wrong.numel() - int(flat[0])
        cause = Cause("tail", count=tail, size=wrong.numel())
        found.append((tail / wrong.numel(), cause))
    yield from (cause for share, cause in sorted(found, key=lambda item: item[0])[:1]
                if share <= _MOST_SHARE)  # fmt: skip
