"""The oracle with every step rounded: what rounding does to each element of the answer.

Inputs that are off by a rounding show how an answer depends on them, but not what is lost on the
way: the tail of GELU is one plus nearly minus one, and whoever writes that down loses it. So
every operator's result is moved by at most one rounding of the format, at random, and operators
that are one step in torch are taken apart as textbooks write them. What that does to an element is
the error that a right kernel may make there; an element without such a step gets none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

Formula = Callable[..., Any]


class RoundedSteps(TorchDispatchMode):
    """Moves the result of every operator by at most `size` of itself, where the format rounds it."""

    def __init__(self, size: float, dtype: torch.dtype, generator: torch.Generator) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.size = size
        self.dtype = dtype
        self.generator = generator

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # skipping it would load the compiler, which costs a second

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        formula = _FORMULAS.get(str(func))
        if formula is not None:
            with self:
                return formula(*args, **(kwargs or {}))
        found = func(*args, **(kwargs or {}))
        if func._schema.is_mutable:
            return _each(found, self._written)
        if any(item.alias_info is not None for item in func._schema.returns):
            return found  # a view: nothing was computed
        return _each(found, self.moved)

    def moved(self, value: torch.Tensor) -> torch.Tensor:
        """The values, each moved by at most `size` of itself unless the format holds it."""
        if value.dtype != torch.float64 or not value.numel():
            return value
        factors = torch.empty_like(value).uniform_(
            1 - self.size, 1 + self.size, generator=self.generator
        )
        # what the format holds as it is, such as a zero or a half, is not rounded
        return torch.where(value == value.to(self.dtype), value, value * factors)

    def _written(self, value: torch.Tensor) -> torch.Tensor:
        return value.copy_(self.moved(value)) if value.dtype == torch.float64 else value


def _each(found: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
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

    rounds: Callable[[torch.Tensor], torch.Tensor]

    def __array_finalize__(self, made_from: Any) -> None:
        if isinstance(made_from, RoundedArray):
            self.rounds = made_from.rounds

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            kwargs["out"] = tuple(map(_bare, kwargs["out"]))
        found = getattr(ufunc, method)(*map(_bare, inputs), **kwargs)
        return _each_array(found, self._rounded)

    def _rounded(self, found: np.ndarray[Any, Any]) -> Any:
        moved = self.rounds(torch.from_numpy(np.array(found))).numpy()
        return rounded_array(moved, self.rounds)


def rounded_array(
    array: np.ndarray[Any, Any], rounds: Callable[[torch.Tensor], torch.Tensor]
) -> RoundedArray:
    """An array that rounds what is computed from it."""
    made = array.view(RoundedArray)
    made.rounds = rounds
    return made


def _bare(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, RoundedArray) else value


def _each_array(found: Any, change: Callable[[np.ndarray[Any, Any]], Any]) -> Any:
    if isinstance(found, tuple):
        return tuple(_each_array(item, change) for item in found)
    array = np.asarray(found)
    return change(array) if array.dtype == np.float64 else found
