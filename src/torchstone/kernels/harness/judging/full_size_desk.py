"""What the referee does with shared memory: it fills inputs in, answers them itself, judges answers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import torch

from torchstone.kernels.harness.calling.shared_calls import SharedCalls, about_leaf
from torchstone.kernels.harness.inputs.planning import Plan
from torchstone.kernels.harness.judging.full_size import FullAnswer, answer_in_full, judge_in_full
from torchstone.kernels.harness.judging.tolerances import judge_output
from torchstone.kernels.harness.reference.running import (
    Values,
    as_tensor,
    callable_of,
    leaves_of,
)
from torchstone.kernels.harness.shared_arrays import Mapped, layout_of, map_bytes, views_of
from torchstone.kernels.harness.values import encode
from torchstone.kernels.messages.facts import Facts
from torchstone.kernels.messages.to_referee import Done, Measured, Room
from torchstone.kernels.messages.trees import AnswerTree, Layout, SharedQuestion

_MOST_KEPT_BYTES = 64 << 20
"""Answers up to this size are kept, to be handed over once more with nothing computed."""


@dataclass(slots=True)
class FullSize:
    """One problem at its own sizes, in memory that candidates see."""

    plan: Plan
    mapped: Mapped
    budget_bytes: int
    _question: SharedQuestion | None = None
    _calls: SharedCalls | None = None
    _drawn: Values | None = None
    _right: FullAnswer | None = None
    _outputs: Layout | None = None
    _replies: Values = field(default_factory=list)

    def measure(self, most_bytes: int, most_calls: int) -> Measured:
        """Draw the problem's own inputs; room for as many draws as fit into so many bytes, at least one."""
        self._drawn = self.plan.reference.inputs(0)
        leaves = leaves_of(self._drawn)
        each = layout_of(leaves, 1).size_bytes
        layout = layout_of(leaves, max(1, min(most_calls, most_bytes // max(each, 1))))
        plain = [None if slot else leaf for slot, leaf in zip(layout.slots, leaves, strict=True)]
        tree = encode({"leaves": plain, "nested": _without_leaves(self._drawn)}, [])
        self._question = SharedQuestion(layout, None, tree)
        return Measured(layout, tree)

    def fill(self, seeds: list[int]) -> Done:
        """Put what these seeds draw into shared memory, one call after the other."""
        assert self._question is not None
        if self._calls is None:
            own = map_bytes(self.mapped.handles[0], writable=True)
            self._calls = SharedCalls(self._question, own, None)
        self._calls.question = self._question
        targets = [
            views_of(slot, self._calls.inputs, len(seeds)) if slot is not None else None
            for slot in self._question.inputs.slots
        ]
        for number, seed in enumerate(seeds):
            drawn = self._drawn if seed == 0 and self._drawn is not None else None
            drawn = drawn or self.plan.reference.inputs(seed)
            self._drawn = None
            leaves = leaves_of(drawn)
            del drawn
            for place, target in enumerate(targets):
                leaf, leaves[place] = as_tensor(leaves[place]), None
                if target is not None and leaf is not None:
                    torch.as_tensor(target[number]).copy_(leaf)
                del leaf  # what is copied is not kept beside its copy
        return Done()

    def answer(self) -> Room:
        """The reference's answer to the first call; what candidates must make room for."""
        assert self._calls is not None
        self._right = answer_in_full(self.plan, self._calls.given()[0], self.budget_bytes)
        forms = [torch.empty(item.reference.shape, dtype=item.reference.dtype, device="meta")
                 for item in self._right.forms]  # fmt: skip
        self._outputs = layout_of(forms, self._calls.question.inputs.calls)
        return Room(self._outputs)

    def judge(self, about: AnswerTree, partial: bool) -> Facts:
        """What is wrong with the answer that lies in shared memory; what a part of one does not hold is not asked."""
        assert self._right is not None
        assert self._calls is not None
        right, self._right = self._right, None  # it is large, and asked for once
        return judge_in_full(
            self.plan, right, about, self._answers(), self._calls.given()[0], partial
        )

    def _answers(self, which: int = 0) -> list[torch.Tensor]:
        assert self._calls is not None
        assert self._outputs is not None
        slots = [slot for slot in self._outputs.slots if slot is not None]
        mapped = self.mapped.outputs()
        return [torch.as_tensor(views_of(slot, mapped, which + 1)[which]) for slot in slots]

    def room(self) -> Room:
        """What answers to all calls take, from the reference's answer to the first one."""
        assert self._question is not None
        assert self._calls is not None
        raw = leaves_of(self.plan.reference.run_once(self._calls.given()[0]))
        found = list(map(as_tensor, raw))
        self._outputs = layout_of(found, self._question.inputs.calls)
        return Room(self._outputs)

    def timed(self, calls: int) -> Done:
        """The reference's answers, as the candidate gives its own."""
        call = callable_of(self.plan.reference.model(0))
        small = self._outputs is not None and self._outputs.size_bytes <= _MOST_KEPT_BYTES
        self._replies = []

        def kept(*inputs: object) -> object:
            self._replies.append(call(*inputs))
            return self._replies[-1] if small else self._replies.pop()

        self._shared(calls).answer_all(kept)
        return Done()

    def exchanged(self, calls: int) -> Done:
        """Inputs found and answers handed over, with nothing computed between them."""
        shared = self._shared(calls)
        if self._replies:
            replies = itertools.cycle(self._replies)
            shared.answer_all(lambda *_: next(replies))
            return Done()
        shared.given()
        assert shared.outputs is not None
        size = max(shared.inputs.numel(), 1)
        for start in range(0, shared.outputs.numel(), size):
            part = shared.outputs[start : start + size]
            part.copy_(shared.inputs[: part.numel()])
        return Done()

    def _shared(self, calls: int) -> SharedCalls:
        assert self._question is not None
        assert self._outputs is not None
        inputs = replace(self._question.inputs, calls=calls)
        outputs = replace(self._outputs, calls=calls)
        question = SharedQuestion(inputs, outputs, self._question.tree)
        return SharedCalls.find(question, self.mapped)

    def check(self, which: int) -> Facts:
        """What is wrong with the answer to one of several fresh inputs."""
        assert self._calls is not None
        inputs = self._calls.given()[which]
        outputs = self._answers(which)
        if self.plan.small:
            right = answer_in_full(self.plan, inputs, self.budget_bytes)
            # only the values are asked here: kinds and nesting are as they should be
            leaves = [replace(about_leaf(item), kind=form.kind)
                      for item, form in zip(outputs, right.forms, strict=True)]  # fmt: skip
            about = AnswerTree(right.structure, leaves)
            return judge_in_full(self.plan, right, about, outputs, inputs)
        case = self.plan.oracle.case(len(self.plan.cases), "own", 0, inputs)
        return Facts(
            outputs=[judge_output(self.plan, case, i, got) for i, got in enumerate(outputs)]
        )


def _without_leaves(value: object) -> object:
    """The nesting of inputs with zeros for what is in it."""
    if isinstance(value, list | tuple):
        return type(value)(_without_leaves(item) for item in value)
    if isinstance(value, dict):
        return {key: _without_leaves(item) for key, item in value.items()}
    return None if value is None else 0
