"""Inputs of a structure: triangular, symmetric, positive definite, sorted, one-hot.

What every draw of a problem's inputs has, the problem promises; a kernel may use it, and inputs
without it are no inputs of the problem. So values that are changed get the structure back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from torchstone.kernels.harness.reference.running import Values, as_tensor, leaves_of, like, rebuilt

_LEAST_SIDE = 4
"""Smaller matrices and lines are sorted or triangular by chance."""


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    holds: Callable[[torch.Tensor], bool]
    restore: Callable[[torch.Tensor], torch.Tensor]


def _is_square(x: torch.Tensor) -> bool:
    return x.dim() >= 2 and x.shape[-1] == x.shape[-2] >= _LEAST_SIDE and x.is_floating_point()


def _is_lower(x: torch.Tensor) -> bool:
    return _is_square(x) and torch.equal(x, x.tril()) and bool(x.tril(-1).any())


def _is_upper(x: torch.Tensor) -> bool:
    return _is_square(x) and torch.equal(x, x.triu()) and bool(x.triu(1).any())


def _is_symmetric(x: torch.Tensor) -> bool:
    """As far as a product with its own transpose is, whose sums are taken in two orders."""
    return _is_square(x) and torch.allclose(x, x.mT, rtol=1e-5, atol=1e-6 * float(x.abs().max()))


def _is_positive(x: torch.Tensor) -> bool:
    return _is_symmetric(x) and bool((torch.linalg.eigvalsh(x.double()) > 0).all())


def _is_sorted(x: torch.Tensor) -> bool:
    return (
        x.dim() >= 1 and x.shape[-1] >= _LEAST_SIDE and bool((x.double().diff(dim=-1) >= 0).all())
    )


def _is_one_hot(x: torch.Tensor) -> bool:
    whole = x.dim() >= 1 and x.shape[-1] >= _LEAST_SIDE and bool(((x == 0) | (x == 1)).all())
    return whole and bool((x.double().sum(-1) == 1).all())


def _symmetric(x: torch.Tensor) -> torch.Tensor:
    return x.tril() + x.tril(-1).mT


def _positive(x: torch.Tensor) -> torch.Tensor:
    """A diagonal larger than the rest of its row: positive definite whatever the values are."""
    even = _symmetric(x.double())
    rest = (even - torch.diag_embed(even.diagonal(dim1=-2, dim2=-1))).abs().sum(-1)
    own = even.diagonal(dim1=-2, dim2=-1).abs()
    return even + torch.diag_embed(rest + own + 1e-3 - even.diagonal(dim1=-2, dim2=-1))


def _one_hot(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(x).scatter_(-1, x.double().argmax(-1, keepdim=True), 1)


_KINDS = (
    _Kind("lower triangular", _is_lower, torch.tril),
    _Kind("upper triangular", _is_upper, torch.triu),
    _Kind("positive definite", _is_positive, _positive),
    _Kind("symmetric", _is_symmetric, _symmetric),
    _Kind("one-hot", _is_one_hot, _one_hot),
    _Kind("sorted", _is_sorted, lambda x: x.sort(dim=-1).values),
)
"""The narrower one first: what is positive definite is symmetric, too."""


@dataclass(frozen=True, slots=True)
class Structures:
    """Which inputs have which structure, by the number of the leaf."""

    kinds: dict[int, _Kind] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return sorted({kind.name for kind in self.kinds.values()})

    def restored(self, inputs: Values) -> Values:
        """The inputs with the structure that changing their values took away."""
        leaves = leaves_of(inputs)
        for number, kind in self.kinds.items():
            tensor = as_tensor(leaves[number])
            if tensor is not None and tensor.numel() and not kind.holds(tensor):
                leaves[number] = like(leaves[number], kind.restore(tensor).to(tensor.dtype))
        return list(rebuilt(inputs, leaves))


def structures_of(draws: list[Values]) -> Structures:
    """What holds for every one of several draws."""
    found: dict[int, _Kind] = {}
    many = [[as_tensor(leaf) for leaf in leaves_of(inputs)] for inputs in draws]
    for number, first in enumerate(many[0]):
        if first is None or not first.numel() or not hasattr(leaves_of(draws[0])[number], "shape"):
            continue
        tensors = [draw[number] for draw in many]
        for kind in _KINDS:
            if all(item is not None and kind.holds(item) for item in tensors):
                found[number] = kind
                break
    return Structures(found)
