"""A call of an operator without its values: what a verdict on it can depend on."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
from itertools import pairwise
from typing import Any, NamedTuple

import torch

SMALL = 1 << 12
"""Elements of all inputs together up to which a kernel runs on the sizes that the call has: microseconds,
and all that a small model needs. Larger calls run with two elements per side."""
SIDE = 2
"""Elements per side of a shrunken tensor: 1 would hide what is wrong with sides that are not broadcast."""


class TensorForm(NamedTuple):
    """A tensor among the arguments of a call."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    expanded: tuple[bool, ...]
    """Sides whose elements are one and the same in memory."""
    storage: int
    """The number of its place in memory among those of the call: two tensors may have one."""
    on_cpu: bool


class Form(NamedTuple):
    """A call; equal ones get equal verdicts."""

    func: Any
    tensors: tuple[TensorForm, ...]
    flags: tuple[Hashable, ...]
    is_exact: bool
    """The sizes are those of the call."""


def is_index(dtype: torch.dtype) -> bool:
    """Integers choose places, counts and classes: whether they are accepted depends on their values."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)


@functools.cache
def is_decided_by_form(func: Any) -> bool:
    """Can an operator be asked at all? Views are decided by their fake kernels; what takes the private
    memory of another operator reads beyond it if that is made up."""
    names = [argument.name for argument in func._schema.arguments]
    opaque = any("workspace" in name or "reserve" in name for name in names)
    return func.namespace == "aten" and not func.is_view and not opaque


def form_of(func: Any, args: Any, kwargs: dict[str, Any], tensors: list[torch.Tensor]) -> Form:
    """The form of a call, with small sizes where the tensors are large."""
    exact = sum(item.numel() for item in tensors) <= SMALL
    storages: dict[tuple[int, int], int] = {}
    forms = tuple(_tensor_form(item, storages, exact) for item in tensors)
    floats: list[float] = []
    flags = tuple(_flags((args, kwargs), floats))
    order = tuple(one <= other for one, other in pairwise(floats))
    return Form(func, forms, (*flags, order), exact)


def _tensor_form(
    tensor: torch.Tensor, storages: dict[tuple[int, int], int], exact: bool
) -> TensorForm:
    shape = tuple(tensor.shape)
    place = (tensor.untyped_storage()._cdata, int(tensor.storage_offset()))
    return TensorForm(
        tensor.dtype,
        shape if exact else tuple(min(size, SIDE) for size in shape),
        tuple(step == 0 and size > 1 for size, step in zip(shape, tensor.stride(), strict=True)),
        storages.setdefault(place, len(storages)),
        tensor.device.type == "cpu",
    )


def _flags(value: Any, floats: list[float]) -> list[Hashable]:
    """All that is not a tensor. Floats count by their sign and order only: learning rates and scales
    change on each step, and no kernel asks for more of them."""
    if isinstance(value, torch.Tensor):
        return ["tensor"]
    if isinstance(value, (tuple, list)):
        found: list[Hashable] = [len(value)]
        for item in value:
            found += _flags(item, floats)
        return found
    if isinstance(value, dict):
        return [*value, *_flags(list(value.values()), floats)]
    if isinstance(value, float):
        floats.append(value)
        return [("float", value > 0, value < 0, value <= 1, math.isfinite(value))]
    return [(type(value), value)] if isinstance(value, Hashable) else [id(type(value))]


def replace_tensors(value: Any, make: Callable[[], Any]) -> Any:
    """Arguments with others in the place of all tensors, in the order of `tensors_in`."""
    if isinstance(value, torch.Tensor):
        return make()
    if isinstance(value, (tuple, list)):
        return type(value)([replace_tensors(item, make) for item in value])
    if isinstance(value, dict):
        return {name: replace_tensors(item, make) for name, item in value.items()}
    return value
