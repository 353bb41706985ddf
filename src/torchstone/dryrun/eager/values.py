"""Values that are known although the tensor is fake: data that were sent to a device, and what was made
of them there. Where they meet a parameter, eager torch is asked whether they fit: indices against sizes,
targets against classes, lengths against a batch.

A value is kept by the storage of the fake tensor, so that views and writes through views need no care.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from torchstone.dryrun.eager.forms import (
    Form,
    form_of,
    is_decided_by_form,
    is_index,
    replace_tensors,
)
from torchstone.dryrun.eager.kernels import (
    FILLS,
    RandomState,
    Refusal,
    apart_from_program,
    make_tensors,
    run_kernel,
)
from torchstone.dryrun.eager.writes import written_tensors
from torchstone.dryrun.session import is_fake, tensors_in

LARGEST = 1 << 20
"""Elements of a tensor of integers whose values are kept: a batch of tokens or labels."""
LARGEST_FLOATS = 1 << 12
"""The same for floats: constants and weights of classes; batches of pictures steer nothing."""
LARGEST_WORK = 1 << 22
"""Elements of a result that is computed for the sake of its check: a few milliseconds."""
_PURGE = 4096
"""Storages after which those that are gone are forgotten."""


class KnownValues:
    """The values of one run."""

    def __init__(self, is_stale: Callable[[torch.Tensor], bool]) -> None:
        self._is_stale = is_stale
        self._buffers: dict[StorageWeakRef, torch.Tensor] = {}
        self._random = RandomState()
        """The device's generator, which is not the CPU's."""

    def value_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """A real tensor with the values of this one, which shares memory with what is kept."""
        if tensor.layout is not torch.strided:
            return None
        if not is_fake(tensor):
            on_cpu = tensor.device.type == "cpu"
            return tensor if on_cpu and not self._is_stale(tensor) else None
        buffer = self._buffers.get(StorageWeakRef(tensor.untyped_storage()))
        if buffer is None or buffer.dtype != tensor.dtype:
            return None
        if buffer.nbytes != tensor.untyped_storage().nbytes():  # it was given another size since
            return None
        return buffer.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def follow(self, func: Any, args: Any, kwargs: dict[str, Any], result: Any) -> None:
        """Compute the values of a result where those of all inputs are known; raise what eager torch
        raises for them."""
        if not is_decided_by_form(func):
            return
        tensors = tensors_in(args, kwargs)
        with apart_from_program():
            values = [self.value_of(item) for item in tensors]
            written = {id(item) for item in written_tensors(func, args, kwargs)}
            known = [value for value in values if value is not None]
            if len(known) == len(tensors):
                refusal = self._compute(func, args, kwargs, tensors, known, written, result)
            else:
                self._forget(item for item in tensors if id(item) in written)
                refusal = self._check_mixed(func, args, kwargs, tensors, values, result)
        if refusal is not None:
            refusal.raise_again()

    def _forget(self, tensors: Any) -> None:
        for item in tensors:
            if is_fake(item) and item.layout is torch.strided:
                self._buffers.pop(StorageWeakRef(item.untyped_storage()), None)

    def _compute(
        self,
        func: Any,
        args: Any,
        kwargs: dict[str, Any],
        tensors: list[torch.Tensor],
        values: list[torch.Tensor],
        written: set[int],
        result: Any,
    ) -> Refusal | None:
        fakes = [item for item in tensors_in(result) if is_fake(item)]
        if not fakes or not all(_is_kept(item) for item in fakes):
            self._forget(item for item in tensors if id(item) in written)
            return None
        refusal, made = run_kernel(func, args, kwargs, values, self._random)
        if refusal is not None:
            self._forget(item for item in tensors if id(item) in written)
            return _for_values(refusal, func, args, kwargs, values)
        for fake, value in zip(tensors_in(result), tensors_in(made), strict=False):
            if is_fake(fake) and id(fake) not in written and value.shape == fake.shape:
                self._keep(fake, value)
        return None

    def _keep(self, fake: torch.Tensor, value: torch.Tensor) -> None:
        if len(self._buffers) > _PURGE:
            self._buffers = {ref: kept for ref, kept in self._buffers.items() if not ref.expired()}
        storage = fake.untyped_storage()
        buffer = torch.zeros(storage.nbytes() // fake.itemsize, dtype=fake.dtype)
        buffer.as_strided(fake.shape, fake.stride(), fake.storage_offset()).copy_(value)
        self._buffers[StorageWeakRef(storage)] = buffer

    def _check_mixed(
        self,
        func: Any,
        args: Any,
        kwargs: dict[str, Any],
        tensors: list[torch.Tensor],
        values: Sequence[torch.Tensor | None],
        result: Any,
    ) -> Refusal | None:
        """Known integers beside tensors without values, for which zeros stand in."""
        indices = [value for value in values if value is not None and is_index(value.dtype)]
        if not indices or torch.Tag.pointwise in func.tags:
            return None
        if any(value.numel() > LARGEST for value in indices):
            return None
        written = list(written_tensors(func, args, kwargs))
        if sum(item.numel() for item in (*tensors_in(result), *written)) > LARGEST_WORK:
            return None
        ids = {id(item) for item in written}
        given = [
            _stand_in(item, id(item) in ids) if value is None or id(item) in ids else value
            for item, value in zip(tensors, values, strict=True)
        ]
        refusal, _ = run_kernel(func, args, kwargs, given)
        unknown = [value is None for value in values]
        chosen = [item.dtype for item, gone in zip(tensors, unknown, strict=True) if gone]
        if refusal is None or torch.bool in chosen:  # how many elements an unknown mask chooses
            return None
        if not any(
            is_index(item.dtype) for item, gone in zip(tensors, unknown, strict=True) if gone
        ):
            form = form_of(func, args, kwargs, tensors)
            if form.is_exact and _is_refused_with_all(form, args, kwargs, given, unknown):
                return None if refusal.is_missing_kernel() else refusal
        return _for_values(refusal, func, args, kwargs, given)

    def result_of(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """The result of a call that needs values, where all are known; else None."""
        tensors = tensors_in(args, kwargs)
        with apart_from_program():
            values = [self.value_of(item) for item in tensors]
            known = [value for value in values if value is not None]
            if len(known) < len(values):
                refusal = self._check_mixed(func, args, kwargs, tensors, values, None)
                made = None
            else:
                refusal, made = run_kernel(func, args, kwargs, known, self._random)
        if refusal is not None:
            refusal.raise_again()
        return made

    def check_function(self, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Raise what a function of torch raises for integers on the CPU. On a device it may be made of
        operators that take any: `one_hot` compares, and classes that are not there are lost."""
        tensors = tensors_in(args, kwargs)
        if not any(map(is_fake, tensors)) or not all(is_index(item.dtype) for item in tensors):
            return
        if func.__name__.endswith("_") or "out" in kwargs or "device" in kwargs:
            return
        with apart_from_program():
            values = [value for item in tensors if (value := self.value_of(item)) is not None]
            if len(values) < len(tensors):
                return
            refusal = _call_apart(func, args, kwargs, values)
            others = [torch.zeros_like(value) for value in values]
            if refusal is None or _call_apart(func, args, kwargs, others) is not None:
                return
        refusal.raise_again()

    def keep(self, fake: torch.Tensor, value: torch.Tensor) -> None:
        """From now on the values of this fake tensor are known."""
        with apart_from_program():
            if _is_kept(fake):
                self._keep(fake, value)


def _call_apart(
    func: Any, args: Any, kwargs: dict[str, Any], tensors: list[torch.Tensor]
) -> Refusal | None:
    rest = iter(tensors)
    given, named = replace_tensors((args, kwargs), lambda: next(rest))
    try:
        func(*given, **named)
    except Exception as error:  # whatever it raises is its refusal
        return Refusal(type(error), str(error))
    return None


def _is_refused_with_all(
    form: Form,
    args: Any,
    kwargs: dict[str, Any],
    given: list[torch.Tensor],
    unknown: list[bool],
) -> bool:
    """Is a call refused with whatever is put where no values are known?"""
    for fill in FILLS:
        made = make_tensors(form.tensors, fill)
        tensors = [
            new if gone else old for new, old, gone in zip(made, given, unknown, strict=True)
        ]
        if run_kernel(form.func, args, kwargs, tensors)[0] is None:
            return False
    return True


def _for_values(
    refusal: Refusal, func: Any, args: Any, kwargs: dict[str, Any], given: list[torch.Tensor]
) -> Refusal | None:
    """The refusal, if other values are accepted in the same call: then it was for these."""
    if refusal.is_missing_kernel():
        return None
    for number in (0, 1):
        others = [torch.full_like(item, number) for item in given]
        if run_kernel(func, args, kwargs, others)[0] is None:
            return refusal
    return None


def _is_kept(tensor: torch.Tensor) -> bool:
    if tensor.layout is not torch.strided:
        return False
    wide = tensor.is_floating_point() or tensor.is_complex()
    return tensor.numel() <= (LARGEST_FLOATS if wide else LARGEST)


def _stand_in(tensor: torch.Tensor, is_written: bool) -> torch.Tensor:
    """Zeros of the same form, in one element's memory where nobody writes."""
    if is_written:
        return torch.zeros(tensor.shape, dtype=tensor.dtype)
    return torch.zeros((), dtype=tensor.dtype).expand(tensor.shape)
