"""Which of several equal elements a reference must choose, seen while it runs.

torch and numpy document that argmax and argmin, and max and min along a side, give the first of
equal elements, and that a stable sort keeps their order. topk, plain sorts, medians and their
like leave it open. A choice is fixed when one of the former is given an input as it is and none of
the latter runs: then a kernel must choose alike, and rounding cannot be its excuse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.reference.running import (
    Reference,
    Values,
    as_tensor,
    leaves_of,
    rebuilt,
)
from torchstone.observe.operators import OperatorMode

_FIRST = frozenset({"argmax", "argmin", "max.dim", "min.dim"})
_OPEN = frozenset({"topk", "kthvalue", "median.dim", "nanmedian.dim", "mode", "argsort", "sort"})


class _Choices(OperatorMode):
    """Operators that choose: those that choose the first of equals, and the others."""

    def __init__(self, inputs: list[torch.Tensor]) -> None:
        super().__init__()
        self.inputs = inputs
        self.fixed = False
        self.open = False

    def run(self, func: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        name = str(func).removeprefix("aten.").removesuffix(".default")
        base = name.partition(".")[0]
        stable = name == "sort.stable" and bool(kwargs.get("stable"))
        if name in _FIRST or stable:
            self.fixed |= _is_one_of(args[0], self.inputs)
        elif base in _OPEN or name in _OPEN:
            self.open = True
        return func(*args, **kwargs)


class _Watched(np.ndarray[Any, Any]):
    """An array whose methods that choose are told to whoever watches."""

    told: Callable[[np.ndarray[Any, Any], bool], None]


def _watch_choices(kind: type[_Watched]) -> None:
    """Methods that choose say so first; of equals `argmax` and `argmin` take the first, `argsort` where it is stable."""
    for name in ("argmax", "argmin", "argsort", "argpartition"):

        def choose(self: _Watched, *args: object, _name: str = name, **kwargs: object) -> object:
            stable = kwargs.get("kind") == "stable" or kwargs.get("stable") is True
            type(self).told(self, _name in ("argmax", "argmin") or (_name == "argsort" and stable))
            return getattr(self.view(np.ndarray), _name)(*args, **kwargs)

        setattr(kind, name, choose)


def ties_are_fixed(reference: Reference, inputs: Values, seed: int = 0) -> bool:
    """Does the reference choose from an input by a rule that says which of equals it takes?"""
    known = [item for item in map(as_tensor, leaves_of(inputs)) if item is not None]
    if reference.framework == "torch":
        with _Choices(known) as seen:
            reference.run(reference.model(seed), inputs)
        return seen.fixed and not seen.open
    if reference.framework != "numpy":
        return False  # nothing is known of its promises
    rules: set[bool] = set()

    def told(array: np.ndarray[Any, Any], first: bool) -> None:
        plain = torch.from_numpy(np.ascontiguousarray(array.view(np.ndarray)))
        if not first or _is_one_of(plain, known):
            rules.add(first)

    class Mine(_Watched):
        """The arrays of this one run."""

    Mine.told = staticmethod(told)
    _watch_choices(Mine)
    leaves = [leaf.view(Mine) if type(leaf) is np.ndarray else leaf for leaf in leaves_of(inputs)]
    reference.run(reference.model(seed), rebuilt(inputs, leaves))
    return rules == {True}


def _is_one_of(tensor: object, inputs: list[torch.Tensor]) -> bool:
    """The elements of an input and nothing else, in whatever layout or wider format."""
    if not isinstance(tensor, torch.Tensor):
        return False
    mine = tensor.detach().reshape(-1).double().sort().values
    return any(
        item.numel() == mine.numel() and torch.equal(mine, item.reshape(-1).double().sort().values)
        for item in inputs
    )
