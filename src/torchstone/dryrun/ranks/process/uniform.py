"""Which fake values are the same on all ranks: what comes out of an all_reduce, and what is made of it.

A question about such a value gets one answer on all ranks. Every other value is local: its answer
may differ from rank to rank, and in some passes it does.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from torchstone.core.text import Text
from torchstone.dryrun.eager.writes import written_tensors
from torchstone.dryrun.script.fakes.answers import is_all, scalar_for
from torchstone.dryrun.session import Session, is_fake, tensors_in

EQUAL, OTHER, NAN = "equal", "other", "nan"
PASSES = (EQUAL, OTHER, NAN)
"""In the first pass all ranks get equal answers; in the others rank 0 gets its own."""
_OTHER_FLOAT = 1e6
_OTHER_INT = 3


SHARED = Text(".item() of a value that all ranks share", "各 rank 共有的值的 .item()")
OF_ONE_RANK = Text(".item() of a value of this rank alone", "仅本 rank 拥有的值的 .item()")


class Uniform:
    """Storages whose content is equal on all ranks."""

    def __init__(self, session: Session, rank: int, answers: str) -> None:
        self._session = session
        self._differs = rank == 0 and answers != EQUAL
        self._answers = answers
        self._known: dict[StorageWeakRef, tuple[int, ...]] = {}
        """Storages and the ranks on which they are equal."""
        self._constants: set[StorageWeakRef] = set()
        """Single numbers that the program made of nothing but constants: a loss scale, a flag, a step count."""
        self._stands_for: dict[StorageWeakRef, StorageWeakRef] = {}
        """Fake single numbers and the real ones in whose place they are read and written."""
        self._written: set[StorageWeakRef] = set()
        """Real ones that were written so: they are constants only where that made them so."""
        self.local_questions = 0

    def mark(self, tensor: torch.Tensor, members: tuple[int, ...]) -> None:
        for key in self._keys(tensor):
            self._known[key] = members

    def _keys(self, tensor: torch.Tensor) -> tuple[StorageWeakRef, ...]:
        """The storage of a tensor, and that of the real one that it stands for."""
        if tensor.layout is not torch.strided:
            return ()
        key = StorageWeakRef(tensor.untyped_storage())
        real = self._stands_for.get(key)
        return (key,) if real is None else (key, real)

    def holds(self, tensor: torch.Tensor) -> bool:
        return StorageWeakRef(tensor.untyped_storage()) in self._known

    def members(self, tensor: torch.Tensor) -> tuple[int, ...]:
        """The ranks on which a collective has made a tensor equal; none for a local one."""
        if tensor.layout is not torch.strided:
            return ()
        return self._known.get(StorageWeakRef(tensor.untyped_storage()), ())

    def follow(self, real: torch.Tensor, fake: torch.Tensor) -> None:
        """A fake tensor stands in for a real one, and is written in its place."""
        if members := self.members(real):
            self.mark(fake, members)
        if real.layout is torch.strided and real.numel() <= 1:
            key, own = (StorageWeakRef(item.untyped_storage()) for item in (real, fake))
            if key in self._constants or key not in self._written:
                self._constants.add(own)
            self._stands_for[own] = key

    def observe(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """An operator whose fake inputs are all uniform has uniform results."""
        written = [*written_tensors(func, args, kwargs)]
        if func._schema.name.startswith("aten::_foreach") and written:
            for place, target in enumerate(written):
                lists = [item for item in args if isinstance(item, (list, tuple))]
                own = [item[place] for item in lists if len(item) == len(written)]
                self._settle(tensors_in(own), [target], overwritten=True)
            return
        inputs = tensors_in(args, kwargs)
        if not inputs and torch.Tag.nondeterministic_seeded not in func.tags:
            self._note_constants(tensors_in(result))
            return
        if func is torch.ops.aten.copy_.default:
            inputs = inputs[1:]
        self._settle(inputs, [*written, *tensors_in(result)], func._schema.is_mutable)

    def _settle(
        self, inputs: list[torch.Tensor], outputs: list[torch.Tensor], overwritten: bool
    ) -> None:
        uniform = bool(inputs) and all(self._counts_as_uniform(item) for item in inputs)
        members = next(filter(None, map(self.members, inputs)), ()) if uniform else ()
        if uniform and not members:
            self._note_constants(outputs)
        for item in outputs:
            self._written.update(self._keys(item)[1:])
            if members:
                self.mark(item, members)
            elif not uniform and overwritten:
                for key in self._keys(item):
                    self._known.pop(key, None)
                    self._constants.discard(key)

    def _note_constants(self, tensors: list[torch.Tensor]) -> None:
        for item in tensors:
            if item.numel() <= 1 and is_fake(item):
                self._constants.update(self._keys(item))

    def _counts_as_uniform(self, tensor: torch.Tensor) -> bool:
        if self.holds(tensor):
            return True
        if is_fake(tensor):
            strided = tensor.layout is torch.strided
            return strided and StorageWeakRef(tensor.untyped_storage()) in self._constants
        return tensor.numel() <= 1  # a small real tensor is a constant of the program, too

    def answer(self, tensor: torch.Tensor, question: str) -> Any:
        """The answer to a question about a fake value."""
        usual = is_all(tensor) if tensor.dtype == torch.bool else scalar_for(tensor.dtype)
        if self.holds(tensor):
            self._session.assume(SHARED, repr(usual))
            return usual
        self.local_questions += 1
        value = self._other(tensor.dtype, usual) if self._differs else usual
        self._session.assume(OF_ONE_RANK, repr(value))
        return value

    def _other(self, dtype: torch.dtype, usual: Any) -> Any:
        if dtype == torch.bool:
            return not usual
        if dtype.is_floating_point:
            return float("nan") if self._answers == NAN else _OTHER_FLOAT
        return _OTHER_INT
