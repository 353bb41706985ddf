"""Runs real kernels on small tensors that are made for it."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from torchstone.dryrun.eager.forms import Form, TensorForm, replace_tensors
from torchstone.observe.compat.modes import DisableTorchFunction, disable_modes

_NO_KERNEL = re.compile(r"not implemented for|Could not run 'aten::|\bCPU\b")
"""Other devices may have a kernel where the CPU has none."""

Fill = Callable[[TensorForm], torch.Tensor]


class Refusal(NamedTuple):
    """An exception of eager torch."""

    kind: type[Exception]
    text: str

    def is_missing_kernel(self) -> bool:
        return _NO_KERNEL.search(self.text) is not None

    def raise_again(self) -> None:
        try:
            error = self.kind(self.text)
        except TypeError:  # a kind that wants more than a text
            error = RuntimeError(self.text)
        raise error


@contextlib.contextmanager
def apart_from_program() -> Iterator[None]:
    """Nobody observes what runs here, and nothing of the program is changed by it."""
    with disable_modes(), DisableTorchFunction(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class RandomState:
    """A generator beside the CPU's own, for operators that draw from that one."""

    def __init__(self) -> None:
        self._state = torch.Generator().get_state()

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        before = torch.get_rng_state()
        torch.set_rng_state(self._state)
        try:
            yield
        finally:
            self._state = torch.get_rng_state()
            torch.set_rng_state(before)


def run_kernel(
    func: Any,
    args: Any,
    kwargs: dict[str, Any],
    tensors: Sequence[torch.Tensor],
    random: RandomState | None = None,
) -> tuple[Refusal | None, Any]:
    """Call an operator with other tensors: its refusal or its result."""
    rest = iter(tensors)
    given, named = replace_tensors((args, kwargs), lambda: next(rest))
    if "device" in named:
        named = {**named, "device": torch.device("cpu")}
    draws = torch.Tag.nondeterministic_seeded in func.tags
    with (random or RandomState()).in_use() if draws else contextlib.nullcontext():
        try:
            return None, func(*given, **named)
        except Exception as error:  # whatever a kernel raises is its refusal
            return Refusal(type(error), str(error)), None


def make_tensors(forms: Sequence[TensorForm], fill: Fill) -> list[torch.Tensor]:
    """Tensors of these forms; those that share a storage and a form are one."""
    made: dict[tuple[int, torch.dtype, tuple[int, ...]], torch.Tensor] = {}
    found: list[torch.Tensor] = []
    for form in forms:
        key = (form.storage, form.dtype, form.shape)
        if key not in made:
            made[key] = _expanded(form, fill)
        found.append(made[key])
    return found


def _expanded(form: TensorForm, fill: Fill) -> torch.Tensor:
    if not any(form.expanded):
        return fill(form)
    shape = tuple(1 if one else n for n, one in zip(form.shape, form.expanded, strict=True))
    return fill(form._replace(shape=shape)).expand(form.shape)


def _fill_ordinary(form: TensorForm) -> torch.Tensor:
    """Floats between 0 and 1, all different; the first index; False."""
    if not (form.dtype.is_floating_point or form.dtype.is_complex):
        return torch.zeros(form.shape, dtype=form.dtype)
    count = max(1, int(torch.Size(form.shape).numel()))
    values = torch.arange(1, count + 1, dtype=torch.float64) / (count + 1)
    values = values[: torch.Size(form.shape).numel()]
    return values.to(form.dtype).reshape(form.shape)


def _fill_identity(form: TensorForm) -> torch.Tensor:
    """Matrices that can be inverted and factorised; ones elsewhere."""
    if form.dtype.is_floating_point and len(form.shape) > 1:
        return torch.eye(*form.shape[-2:]).expand(form.shape).to(form.dtype).clone()
    return torch.ones(form.shape, dtype=torch.float32).to(form.dtype)


def _fill_increasing(form: TensorForm) -> torch.Tensor:
    """0, 1, 2, … in integers: borders and offsets."""
    count = int(torch.Size(form.shape).numel())
    return torch.arange(count).reshape(form.shape).to(form.dtype)


def _fill_zeros(form: TensorForm) -> torch.Tensor:
    return torch.zeros(form.shape).to(form.dtype)


FILLS: tuple[Fill, ...] = (_fill_ordinary, _fill_identity, _fill_increasing, _fill_zeros)
"""A call is refused for its form only if it is refused with each of these values."""


def _fill_masks(count: int) -> Fill:
    """As many True as another tensor has rows: what a mask chooses, or where it puts them."""

    def fill(form: TensorForm) -> torch.Tensor:
        if form.dtype != torch.bool:
            return _fill_ordinary(form)
        return (torch.arange(int(torch.Size(form.shape).numel())) < count).reshape(form.shape)

    return fill


def _fills_for(form: Form) -> Iterator[Fill]:
    yield from FILLS
    if any(item.dtype == torch.bool for item in form.tensors):
        rows = {item.shape[0] for item in form.tensors if item.shape and item.dtype != torch.bool}
        yield from map(_fill_masks, sorted(rows))


def try_form(form: Form, args: Any, kwargs: dict[str, Any]) -> Refusal | None:
    """The refusal of a form, None where some values are accepted."""
    first = None
    for fill in _fills_for(form):
        try:
            tensors = make_tensors(form.tensors, fill)
        except RuntimeError as error:  # no way to make such a tensor: nothing to try
            return Refusal(NotImplementedError, f"not implemented for {error}")
        refusal, _ = run_kernel(form.func, args, kwargs, tensors)
        if refusal is None:
            return None
        first = first or refusal
    return first
