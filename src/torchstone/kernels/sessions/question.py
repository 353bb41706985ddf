"""The problem's own inputs in shared memory, and what is known of answers to them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torchstone.kernels.messages.trees import Layout, SharedQuestion, Tree


@dataclass(frozen=True, slots=True)
class Question:
    """What a candidate is asked at the problem's own sizes."""

    inputs: Layout
    outputs: Layout
    tree: Tree
    reference_seconds: float
    """CPU time in which the reference answered once, with all that judging it took."""

    @property
    def most_calls(self) -> int:
        return self.inputs.calls

    @property
    def answer_bytes(self) -> int:
        """Of one call."""
        return self.outputs.size_bytes // self.outputs.calls

    @property
    def shapes(self) -> str:
        slots = [item for item in self.inputs.slots if item is not None]
        return " ".join("×".join(map(str, item.shape)) or "1" for item in slots)

    def for_calls(self, calls: int) -> SharedQuestion:
        """The part of a message about so many calls."""
        return SharedQuestion(
            replace(self.inputs, calls=calls), replace(self.outputs, calls=calls), self.tree
        )
