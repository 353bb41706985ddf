"""Calls whose inputs and answers lie in shared memory, as large as the problem's own are.

The same code runs in the candidate's process and in the referee's, so that what it costs to find the
inputs and to hand the answers over is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from torchstone.kernels.harness.inputs.cases import kind_of, structure_of
from torchstone.kernels.harness.reference.running import Values, as_tensor, leaves_of, rebuilt
from torchstone.kernels.harness.shared_arrays import Mapped, map_bytes, views_of
from torchstone.kernels.harness.values import decode, name_of, plain_place
from torchstone.kernels.messages.trees import AnswerTree, SharedQuestion, Tree

_COMPARED_BYTES = 16 << 20
"""Bytes that are compared at once: what fits into a cache several times over is fast enough."""


@dataclass(slots=True)
class SharedCalls:
    """The mappings of one question, and the answers to it."""

    question: SharedQuestion
    inputs: torch.Tensor
    outputs: torch.Tensor | None

    @classmethod
    def find(cls, question: SharedQuestion, mapped: Mapped) -> SharedCalls:
        """What a question is about, in memory that is mapped."""
        return cls(question, mapped.inputs(), mapped.outputs() if question.outputs else None)

    def given(self) -> list[Values]:
        """The inputs of every call."""
        calls = self.question.inputs.calls
        plain = decode(self.question.tree, [], plain_place)
        columns = [
            [value] * calls if slot is None else views_of(slot, self.inputs, calls)
            for slot, value in zip(self.question.inputs.slots, plain["leaves"], strict=True)
        ]
        nested = plain["nested"]
        if not any(isinstance(item, list | tuple | dict) or item is None for item in nested):
            return list(map(list, zip(*columns, strict=True)))
        return [list(rebuilt(nested, row)) for row in zip(*columns, strict=True)]

    def put(self, found: object) -> None:
        """Hand the answer to a single call over; an output of another form stays where it is."""
        assert self.question.outputs is not None
        assert self.outputs is not None
        for slot, leaf in zip(self.question.outputs.slots, leaves_of(found), strict=False):
            tensor = as_tensor(leaf)
            if slot is None or tensor is None:
                continue
            if (name_of(tensor.dtype), tuple(tensor.shape)) == (slot.dtype, slot.shape):
                torch.as_tensor(views_of(slot, self.outputs, 1)[0]).copy_(tensor)

    def answer_all(self, model: Callable[..., object]) -> None:
        """Call once for every input and hand the answers over, nothing else."""
        assert self.question.outputs is not None
        assert self.outputs is not None
        calls = self.question.inputs.calls
        rooms = [
            views_of(slot, self.outputs, calls) if slot is not None else [None] * calls
            for slot in self.question.outputs.slots
        ]
        targets = [[torch.as_tensor(item) for item in room] for room in rooms]
        single = targets[0] if len(targets) == 1 else None
        with torch.no_grad():
            for number, inputs in enumerate(self.given()):
                found = model(*inputs)
                if single is not None and type(found) is torch.Tensor:
                    single[number].copy_(found)
                    continue
                for target, leaf in zip(targets, leaves_of(found), strict=True):
                    target[number].copy_(_as_tensor(leaf))

    def changed_input(self, handle: int) -> int:
        """The first array that is not what the referee filled in; -1 where none is."""
        fresh = map_bytes(handle, writable=False).numpy()
        mine = self.inputs.numpy()
        arrays = [slot for slot in self.question.inputs.slots if slot is not None]
        for number, slot in enumerate(arrays):
            end = slot.offset_bytes + slot.step_bytes * self.question.inputs.calls
            for start in range(slot.offset_bytes, end, _COMPARED_BYTES):
                part = slice(start, min(start + _COMPARED_BYTES, end))
                if not np.array_equal(mine[part], fresh[part]):
                    return number
        return -1


def _as_tensor(leaf: object) -> torch.Tensor:
    tensor = as_tensor(leaf)
    if tensor is None:
        raise TypeError(f"an output of type {type(leaf).__name__}")
    return tensor


def about_leaf(leaf: object) -> Tree:
    """What an output is, without what it holds."""
    tensor = as_tensor(leaf)
    if tensor is None:
        return Tree(kind_of(leaf))
    stride = leaf.stride() if isinstance(leaf, torch.Tensor) else tensor.stride()
    return Tree(kind_of(leaf), name_of(tensor.dtype), list(tensor.shape), list(stride))


def about_answer(found: object, leaves: Sequence[object]) -> AnswerTree:
    """The form of an answer with these leaves."""
    return AnswerTree(structure_of(found), [about_leaf(item) for item in leaves])
