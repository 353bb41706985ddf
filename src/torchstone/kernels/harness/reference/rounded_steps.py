"""The oracle with every step rounded: what rounding does to each element of the answer.

Inputs that are off by a rounding show how an answer depends on them, but not what is lost on the
way: the tail of GELU is one plus nearly minus one, and whoever writes that down loses it. So
every operator's result is moved by at most one rounding of the format, at random, and operators
that are one step in torch are taken apart as textbooks write them. What that does to an element is
the error that a right kernel may make there; an element without such a step gets none.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.calling.monitor import MOVES
from torchstone.kernels.harness.reference.running import DoublePrecision

Formula = Callable[..., object]
_APPROXIMATED = frozenset(
    "exp exp2 log log2 log10 erf erfc erfinv sin cos tan asin acos atan atan2 cosh acosh sigmoid lgamma "
    "digamma i0 special_ndtr".split()
)
"""Functions that no machine gives exactly: erf(-10) is -1 in double precision, too, and is not."""
_POOL = 1 << 13
"""Random factors that are drawn at once; more elements than these get their own."""


class Factors:
    """Moves numbers by at most `size` of themselves, where a format rounds them."""

    def __init__(self, size: float, dtype: torch.dtype, generator: torch.Generator) -> None:
        self.size, self.dtype, self._generator = size, dtype, generator
        self.kind = np.float16 if dtype == torch.float16 else np.float32
        self._pool = self._drawn(_POOL)
        self._next = 0

    def _drawn(self, count: int) -> torch.Tensor:
        drawn = torch.empty(count, dtype=torch.float64)
        return drawn.uniform_(1 - self.size, 1 + self.size, generator=self._generator)

    def take(self, count: int) -> torch.Tensor:
        """So many factors, other ones than the last time."""
        if count > _POOL:
            return self._drawn(count)
        if self._next + count > _POOL:
            self._pool, self._next = self._drawn(_POOL), 0
        self._next += count
        return self._pool[self._next - count : self._next]

    def approximated(self, value: torch.Tensor) -> torch.Tensor:
        """The values, each moved by at most `size` of itself."""
        if value.dtype != torch.float64 or not value.numel():
            return value
        return value * self.take(value.numel()).view(value.shape)

    def moved(self, value: torch.Tensor) -> torch.Tensor:
        """The values, each moved by at most `size` of itself unless the format holds it."""
        if value.dtype != torch.float64 or not value.numel():
            return value
        factors = self.take(value.numel()).view(value.shape)
        # what the format holds as it is, such as a zero or a half, is not rounded
        return torch.where(value == value.to(self.dtype), value, value * factors)

    def moved_array(self, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The same for an array of numpy."""
        factors = self.take(value.size).numpy().reshape(value.shape)
        with np.errstate(all="ignore"):
            return np.where(value == value.astype(self.kind), value, value * factors)


class RoundedSteps(DoublePrecision):
    """Double precision in which the result of every operator is moved."""

    def __init__(self, factors: Factors) -> None:
        super().__init__()
        self.factors = factors

    def step(self, func: Any, args: tuple[Any, ...], keywords: dict[str, object]) -> object:
        kind, formula = _kind_of(func)
        if kind == "formula":
            with self:
                return formula(*args, **keywords)
        found = func(*args, **keywords)
        if kind == "moves":
            return found
        if kind == "logarithm" and args[0].numel():  # nothing has no largest element
            with self:
                return formula(found, *args, **keywords)
        if kind == "approximates":
            return _each(found, self.factors.approximated)
        return _each(found, self._written if kind == "writes" else self.factors.moved)

    def _written(self, value: torch.Tensor) -> torch.Tensor:
        if value.dtype != torch.float64:
            return value
        return value.copy_(self.factors.moved(value))


@functools.cache
def _kind_of(func: Any) -> tuple[str, Formula]:
    """What an operator does: a formula of its own, writes in place, moves, approximates, computes."""
    for kind, formulas in (("formula", _FORMULAS), ("logarithm", _LOGARITHMS)):
        if str(func) in formulas:
            return kind, formulas[str(func)]
    schema = func._schema
    if schema.is_mutable:
        return "writes", func
    name = schema.name.rpartition("::")[2]
    if any(item.alias_info is not None for item in schema.returns) or name in MOVES:
        return "moves", func
    return ("approximates" if name in _APPROXIMATED else "computes"), func


def _each(found: object, change: Callable[[torch.Tensor], torch.Tensor]) -> object:
    if isinstance(found, torch.Tensor):
        return change(found)
    if isinstance(found, list | tuple):
        return type(found)([_each(item, change) for item in found])
    return found


def _gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    if approximate == "tanh":
        return 0.5 * x * (1 + _tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5)))


def _tanh(x: torch.Tensor) -> torch.Tensor:
    """As it is written where a language has no tanh."""
    return 2 * torch.sigmoid(2 * x) - 1


def _elu(
    x: torch.Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0
) -> torch.Tensor:
    below = scale * alpha * (torch.exp(input_scale * x.clamp(max=0)) - 1)
    return torch.where(x > 0, scale * x, below)


def _softplus(x: torch.Tensor, beta: float = 1.0, threshold: float = 20.0) -> torch.Tensor:
    scaled = beta * x
    below = torch.log(1 + torch.exp(scaled.clamp(max=threshold))) / beta
    return torch.where(scaled > threshold, x, below)


def _log_sigmoid(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return -torch.log(1 + torch.exp(-x.clamp(min=-700))), x


def _log_softmax(x: torch.Tensor, dim: int, _: bool = False) -> torch.Tensor:
    return x - torch.logsumexp(x, dim, keepdim=True)


def _asinh(x: torch.Tensor) -> torch.Tensor:
    return torch.sign(x) * torch.log(x.abs() + torch.sqrt(x * x + 1))


def _of_a_sum(found: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    """A logarithm of a sum, taken again from the sum: one plus next to nothing is one."""
    again = largest + torch.log(torch.exp(found - largest))
    return torch.where(torch.isfinite(again), again, found)


_LOGARITHMS: dict[str, Formula] = {
    "aten.logsumexp.default": lambda found, x, dim, keepdim=False: _of_a_sum(found, x.amax(dim, keepdim)),
    "aten.logcumsumexp.default": lambda found, x, dim: _of_a_sum(found, torch.cummax(x, dim).values),
    "aten.logaddexp.default": lambda found, x, y: _of_a_sum(found, torch.maximum(x, y)),
}  # fmt: skip
"""Logarithms of sums: given what the operator gives, and its arguments."""
_FORMULAS: dict[str, Formula] = {
    "aten.gelu.default": _gelu,
    "aten.tanh.default": _tanh,
    "aten.elu.default": _elu,
    "aten.softplus.default": _softplus,
    "aten.log_sigmoid_forward.default": _log_sigmoid,
    "aten._log_softmax.default": _log_softmax,
    "aten.expm1.default": lambda x: torch.exp(x) - 1,
    "aten.log1p.default": lambda x: torch.log(1 + x),
    "aten.sinh.default": lambda x: 0.5 * (torch.exp(x) - torch.exp(-x)),
    "aten.asinh.default": _asinh,
    "aten.atanh.default": lambda x: 0.5 * torch.log((1 + x) / (1 - x)),
}  # fmt: skip
"""Operators of torch that cancel inside, as a textbook or a kernel without them writes them."""


class RoundedArray(np.ndarray[Any, Any]):
    """An array of numpy whose operators round like the steps above."""

    factors: Factors

    def __array_finalize__(self, made_from: object) -> None:
        if isinstance(made_from, RoundedArray):
            self.factors = made_from.factors

    def __array_ufunc__(self, ufunc: object, method: str, *inputs: object, **kwargs: Any) -> object:
        if "out" in kwargs:
            kwargs["out"] = tuple(map(_bare, kwargs["out"]))
        with np.errstate(all="ignore"):  # the reference itself has told it once
            found = getattr(ufunc, method)(*map(_bare, inputs), **kwargs)
        if isinstance(found, tuple):
            return tuple(map(self._rounded, found))
        return self._rounded(found)

    def _rounded(self, found: object) -> object:
        array = np.asarray(found)
        if array.dtype != np.float64:
            return found
        return rounded_array(self.factors.moved_array(array), self.factors)


def rounded_array(value: object, factors: Factors) -> object:
    """An array that rounds what is computed from it; other values as they are."""
    if not isinstance(value, np.ndarray):
        return value
    made = value.view(RoundedArray)
    made.factors = factors
    return made


def _bare(value: object) -> object:
    return value.view(np.ndarray) if isinstance(value, RoundedArray) else value
