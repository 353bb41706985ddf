"""The problem's own inputs in shared memory, and what is known of answers to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchstone.core.quantity import human
from torchstone.core.text import Text
from torchstone.kernels.sessions.effort import cpu_seconds_of
from torchstone.kernels.sessions.run import Run

MOST_CALLS = 4096
_MOST_BYTES = 64 << 20
"""Memory for several draws, where one draw is small: enough calls for a clock, and still in no one's way."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a candidate is asked at the problem's own sizes."""

    inputs: dict[str, Any]
    outputs: dict[str, Any]
    tree: dict[str, Any]
    most_calls: int
    answer_bytes: int
    """Of one call."""
    reference_seconds: float
    """CPU time in which the reference answered once, with all that judging it took."""

    def for_calls(self, calls: int) -> dict[str, Any]:
        """The fields of a message about so many calls."""
        return {
            "tree": self.tree,
            "inputs": {**self.inputs, "calls": calls},
            "outputs": {**self.outputs, "calls": calls},
        }


def prepare_question(run: Run) -> Question | Text:
    """Inputs filled in and the reference's answer known, once for each verdict; or what is in the way."""
    if run.question is None:
        run.question = _prepare(run)
    found: Question | Text = run.question
    return found


def _prepare(run: Run) -> Question | Text:
    measured, _ = run.ask_referee("full_measure", most_bytes=_MOST_BYTES, most_calls=MOST_CALLS)
    if 2 * measured["bytes"] > run.memory_bytes:
        return _too_large(2 * measured["bytes"], run.memory_bytes)
    run.arena.make_room_for_inputs(measured["bytes"])
    run.ask_referee("full_fill", seeds=[0])
    run.arena.seal_inputs()
    before = cpu_seconds_of(run.referee.pid)
    answer, _ = run.ask_referee("full_answer" if run.facts["small"] else "full_room")
    needed = measured["bytes"] + 2 * answer["bytes"]
    if needed > run.memory_bytes:
        return _too_large(needed, run.memory_bytes)
    run.arena.make_room_for_outputs(answer["bytes"])
    calls = int(measured["inputs"]["calls"])
    return Question(
        measured["inputs"], answer["outputs"], measured["tree"], calls, answer["bytes"] // calls,
        cpu_seconds_of(run.referee.pid) - before,
    )  # fmt: skip


def _too_large(needed: int, budget: int) -> Text:
    one, two = human(needed, "B"), human(budget, "B")
    return Text(
        f"the problem's own inputs need at least {one} of memory and {two} may be used (--memory)",
        f"问题自身的输入至少需要 {one} 内存，而可用 {two}（--memory）",
    )
