"""Asks eager torch about calls with fake tensors, which accept more and sometimes less than it does.

A fake tensor's kernel computes shapes. Whether dtypes, ranks and flags go together is decided in the
real one: it runs once for each form of a call, on tensors with a few elements, and its verdict is kept.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import torch

from torchstone.dryrun.eager.forms import (
    SIDE,
    Form,
    form_of,
    is_decided_by_form,
    is_index,
)
from torchstone.dryrun.eager.kernels import (  # fmt: skip
    FILLS,
    Refusal,
    apart_from_program,
    make_tensors,
    run_kernel,
    try_form,
)
from torchstone.dryrun.session import tensors_in

MOST_FORMS = 20_000
"""Forms that are tried in one run; a program that makes new ones without end (lengths of sequences, say)
is not slowed down by more."""
LARGEST_RESULT = 1 << 16
"""Elements of a result: small inputs may be repeated to any size."""
LARGEST_NUMBER = 64
"""Numbers among the arguments of a shrunken call: a larger one is a size, which no longer fits."""
_PLAIN = (torch.float32, torch.int64, torch.bool)
"""One dtype of each kind: what a call accepts in some of these it does not refuse for its sizes."""


class Verdicts:
    """The verdicts of one run."""

    def __init__(self, asks_cuda: bool = False) -> None:
        """`asks_cuda` where tensors on the CPU stand for those of a GPU."""
        self._asks_cuda = asks_cuda
        self._known: dict[Form, Refusal | None] = {}

    def check(self, func: Any, args: Any, kwargs: dict[str, Any], result: Any) -> None:
        """Raise what eager torch raises for this call."""
        if not is_decided_by_form(func):
            return
        tensors = tensors_in(args, kwargs)
        if not tensors or any(item.layout is not torch.strided for item in tensors):
            return
        form = form_of(func, args, kwargs, tensors)
        if form not in self._known:
            if len(self._known) >= MOST_FORMS or not _can_try(func, form, args, kwargs, result):
                return
            with apart_from_program():
                self._known[form] = _judge(form, args, kwargs, self._asks_cuda)
        refusal = self._known[form]
        if refusal is not None:
            refusal.raise_again()

    def accepted_result(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """What eager torch gives for a call that a fake tensor refused; None if it refuses it too, or if
        the call is too large to try."""
        tensors = tensors_in(args, kwargs)
        if not is_decided_by_form(func) or func._schema.is_mutable or not tensors:
            return None
        form = form_of(func, args, kwargs, tensors)
        if not form.is_exact or len({item.device for item in tensors}) > 1:
            return None
        with apart_from_program():
            for fill in FILLS:
                made = make_tensors(form.tensors, fill)
                refusal, result = run_kernel(func, args, kwargs, made)
                if refusal is None:
                    return result
        return None


_COUNTS = re.compile(r"lengths?$|offsets|splits")
"""Arguments that say how far a kernel reads: some of them are believed without a look at the sizes."""


def _can_try(func: Any, form: Form, args: Any, kwargs: dict[str, Any], result: Any) -> bool:
    if any(_COUNTS.search(item.name) for item in func._schema.arguments):
        return False
    if form.is_exact:
        return sum(item.numel() for item in tensors_in(result)) <= LARGEST_RESULT
    if any(_is_large(item) for item in (*args, *kwargs.values())):
        return False
    named = {item.name: value for item, value in zip(func._schema.arguments, args, strict=False)}
    return not any(_is_size(*item) for item in (*named.items(), *kwargs.items()))


def _is_size(name: str, value: Any) -> bool:
    """A single number that is no axis: where a tensor is shrunk it no longer fits, and some kernels (that of an LSTM
    is given its hidden size) believe it and read beyond the tensor."""
    return type(value) is int and value > SIDE and "dim" not in name


def _is_large(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_is_large(item) for item in value)
    return type(value) is int and abs(value) > LARGEST_NUMBER


def _judge(form: Form, args: Any, kwargs: dict[str, Any], asks_cuda: bool) -> Refusal | None:
    """A refusal counts if other dtypes are accepted in the same places, or if the sizes are the true
    ones and no integers could have decided: then only the call itself is left to be refused."""
    refusal = try_form(form, args, kwargs)
    if refusal is None:
        return None
    if refusal.is_missing_kernel():
        only_here = not asks_cuda and all(item.on_cpu for item in form.tensors)
        return refusal if only_here and _accepts_other_dtypes(form, args, kwargs) else None
    by_sizes = form.is_exact and not any(is_index(item.dtype) for item in form.tensors)
    return refusal if by_sizes or _accepts_other_dtypes(form, args, kwargs) else None


MOST_TENSORS = 5
"""Tensors up to which all kinds are tried in all places: 3 to this power are 243 calls, once."""


def _accepts_other_dtypes(form: Form, args: Any, kwargs: dict[str, Any]) -> bool:
    count = len(form.tensors)
    kinds = (
        itertools.product(_PLAIN, repeat=count)
        if count <= MOST_TENSORS
        else ((kind,) * count for kind in _PLAIN)
    )
    for chosen in kinds:
        tensors = tuple(
            item._replace(dtype=dtype) for item, dtype in zip(form.tensors, chosen, strict=True)
        )
        if try_form(form._replace(tensors=tensors), args, kwargs) is None:
            return True
    return False
