"""Where torch's answer is finite by its own choice, and a right kernel's need not be.

`scaled_dot_product_attention` gives zeros for a query that sees no key, and for one whose scores are
no numbers; a softmax gives NaN there. Variance, deviation and norm square in double precision on a CPU; in the
format of the inputs, as on a GPU, the square of 1e30 is infinite. The reference is run once more with
NaN in such rows and with squares in the format of the inputs: where its answer is no longer finite,
a candidate's need not be.

A mask replaces what it hides; many kernels add a large negative number to it instead, which leaves a NaN and an
infinity as they are. With such numbers among the inputs the reference is run once more with masks that are added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchstone.kernels.harness.reference.running import Reference, Values, as_tensor, leaves_of
from torchstone.observe.operators import CallMode, OperatorMode

_ATTENTION = torch.nn.functional.scaled_dot_product_attention


class _UnseenRows(CallMode):
    """Attention whose rows without a key are NaN."""

    attends: bool = False

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        found = func(*args, **kwargs)
        if func is not _ATTENTION:
            return found
        self.attends = True
        return found.masked_fill(_without_keys(*args, **kwargs), float("nan"))


def _without_keys(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,  # noqa: ARG001 (torch's own arguments)
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,  # noqa: ARG001
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Queries whose scores are all minus infinity, or no numbers: torch gives zeros for both."""
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    factor = scale if scale is not None else max(query.shape[-1], 1) ** -0.5
    scores = query.double() @ key.double().transpose(-2, -1) * factor
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return ((scores == float("-inf")) | scores.isnan()).all(-1, keepdim=True)


_SQUARE_OVERFLOWS = 1e18
"""Well below the root of the largest float32, so that a sum of many squares counts, too."""


class _PlainSquares(OperatorMode):
    """Variance, deviation and norm in the format of their input."""

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, object]) -> object:
        found = func(*args, **kwargs)
        name = str(func).removeprefix("aten.").partition(".")[0]
        if name not in ("var", "std", "var_mean", "std_mean", "linalg_vector_norm", "norm"):
            return found
        if not bool((args[0].abs() > _SQUARE_OVERFLOWS).any()):
            return found
        spread = found[0] if isinstance(found, tuple) else found
        centred = args[0] - args[0].mean() if name[0] in "vs" else args[0]
        beyond = torch.isinf(centred.square().sum()) & (spread.abs() > _SQUARE_OVERFLOWS)
        spread = torch.where(beyond, float("inf"), spread)
        return (spread, *found[1:]) if isinstance(found, tuple) else spread


_HIDES = -1e4
"""What a mask puts in place of a score is at most this: its exponential is zero in every format."""
_MASKS = frozenset({"where", "masked_fill", "masked_fill_", "index_put", "index_put_", "copy_"})


class _AddedMasks(OperatorMode):
    """Masks that hide finite numbers only."""

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, object]) -> object:
        name = str(func).removeprefix("aten.").partition(".")[0]
        if name not in _MASKS:
            return func(*args, **kwargs)
        before = [item.clone() for item in args if _holds_numbers(item)]
        found = func(*args, **kwargs)
        for item in before:
            if item.shape != found.shape:
                continue
            hidden = (found <= _HIDES) & (item.isnan() | (item == float("inf")))
            masked = found.masked_fill(hidden, float("nan"))
            found = found.copy_(masked) if name.endswith("_") else masked
        return found


def _holds_numbers(item: object) -> bool:
    return isinstance(item, torch.Tensor) and item.is_floating_point()


def attends(reference: Reference, inputs: Values, seed: int = 0) -> bool:
    """Does the reference call torch's attention?"""
    if reference.framework != "torch":
        return False
    rows = _UnseenRows()
    with rows:
        reference.run(reference.model(seed), inputs)
    return rows.attends


def free_places(
    reference: Reference, inputs: Values, seed: int, answers: list[torch.Tensor], attend: bool
) -> list[torch.Tensor]:
    """Per output, where the answer is finite by choice; nothing where no choice is made."""
    modes: list[Callable[[], OperatorMode | CallMode]] = []
    modes += [_UnseenRows] * attend + [_PlainSquares] * _overflows(inputs)
    modes += [_AddedMasks] * _is_poisoned(inputs)
    free: list[torch.Tensor] = []
    for mode in modes if reference.framework == "torch" else []:
        with mode():
            found = reference.run(reference.model(seed), inputs)
        other = [t for leaf in leaves_of(found) if (t := as_tensor(leaf)) is not None]
        new = [torch.isfinite(a) & ~torch.isfinite(b) for a, b in zip(answers, other, strict=True)]
        free = [a | b for a, b in zip(free, new, strict=True)] if free else new
    return free


def _overflows(inputs: Values) -> bool:
    return any(
        t.dtype == torch.float32 and bool((t.abs() > _SQUARE_OVERFLOWS).any())
        for t in _tensors(inputs)
    )


def _is_poisoned(inputs: Values) -> bool:
    return any(
        t.is_floating_point() and not bool(torch.isfinite(t).all()) for t in _tensors(inputs)
    )


def _tensors(inputs: Values) -> list[torch.Tensor]:
    return [t for leaf in leaves_of(inputs) if (t := as_tensor(leaf)) is not None]
