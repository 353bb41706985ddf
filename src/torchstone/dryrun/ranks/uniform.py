"""Which fake values are the same on all ranks: what comes out of an all_reduce, and what is made of it.

A question about such a value gets one answer on all ranks. Every other value is local: its answer
may differ from rank to rank, and in some passes it does.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from torchstone.dryrun.script.answers import scalar_for
from torchstone.dryrun.script.session import Session, is_fake, tensors_in

EQUAL, OTHER, NAN = "equal", "other", "nan"
PASSES = (EQUAL, OTHER, NAN)
"""In the first pass all ranks get equal answers; in the others rank 0 gets its own."""
_OTHER_FLOAT = 1e6
_OTHER_INT = 3


class Uniform:
    """Storages whose content is equal on all ranks."""

    def __init__(self, session: Session, rank: int, answers: str) -> None:
        self._session = session
        self._differs = rank == 0 and answers != EQUAL
        self._answers = answers
        self._known: set[StorageWeakRef] = set()
        self.local_questions = 0

    def mark(self, tensor: torch.Tensor) -> None:
        if tensor.layout is torch.strided:
            self._known.add(StorageWeakRef(tensor.untyped_storage()))

    def holds(self, tensor: torch.Tensor) -> bool:
        return StorageWeakRef(tensor.untyped_storage()) in self._known

    def follow(self, real: torch.Tensor, fake: torch.Tensor) -> None:
        """A fake tensor stands in for a real one."""
        if self.holds(real):
            self.mark(fake)

    def observe(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """An operator whose fake inputs are all uniform has uniform results."""
        if not self._known:
            return
        inputs = tensors_in(args, kwargs)
        if func is torch.ops.aten.copy_.default:
            inputs = inputs[1:]
        uniform = bool(inputs) and all(self._counts_as_uniform(item) for item in inputs)
        for item in tensors_in(result):
            if uniform:
                self.mark(item)
            elif func._schema.is_mutable:
                self._known.discard(StorageWeakRef(item.untyped_storage()))

    def _counts_as_uniform(self, tensor: torch.Tensor) -> bool:
        if self.holds(tensor):
            return True
        # a small real tensor is a constant of the program: a scale, a step count
        return not is_fake(tensor) and tensor.numel() <= 1

    def answer(self, tensor: torch.Tensor, question: str) -> Any:
        """The answer to a question about a fake value."""
        usual = scalar_for(tensor.dtype)
        if self.holds(tensor):
            self._session.assume(".item() of a value that all ranks share", repr(usual))
            return usual
        self.local_questions += 1
        value = self._other(tensor.dtype) if self._differs else usual
        self._session.assume(".item() of a value of this rank alone", repr(value))
        return value

    def _other(self, dtype: torch.dtype) -> Any:
        if dtype == torch.bool:
            return True
        if dtype.is_floating_point:
            return float("nan") if self._answers == NAN else _OTHER_FLOAT
        return _OTHER_INT
