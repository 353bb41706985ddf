"""The problem's own inputs at their own sizes: once through the reference, once through the candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torchstone.core.quantity import human
from torchstone.core.text import NOTHING, Text
from torchstone.kernels.sessions.calls import Call
from torchstone.kernels.sessions.limits import is_out_of_memory
from torchstone.kernels.sessions.question import Question, prepare_question
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import Session, SessionError

_SLOWER = 10
"""How many times longer than the reference a candidate may take where that is more than its limit."""


@dataclass(frozen=True, slots=True)
class FullSizeRun:
    """What became of the run; `why` says what kept it from being made."""

    status: Literal["judged", "limit"]
    call: Call | None = None
    how: str = ""
    rows: int = 0
    changed_input: int = -1
    why: Text = NOTHING


_TOO_SLOW = Text(
    "the interpreter takes too long for the problem's own sizes (--timeout)",
    "解释器在问题自身尺寸下耗时过长（--timeout）",
)


def run_in_full(run: Run) -> FullSizeRun:
    """Run and judge; a limit of this machine is no fault of the candidate."""
    question = prepare_question(run)
    if isinstance(question, Text):
        return FullSizeRun("limit", why=question)
    try:
        session, answer = run.open({}, memory_bytes=run.memory_bytes)
        if "error" not in answer:
            answer = run.build(session, 0)
        if "error" in answer:
            return FullSizeRun("limit", why=Text("it does not load again", "无法再次加载"))
        return _judge(run, session, question)
    except SessionError as error:
        call = _call(question)
        call.ended = error.ended
        if is_out_of_memory(None, error.ended):
            return FullSizeRun("limit", why=_ran_out(run.memory_bytes))
        if run.interpreted and error.ended.late:
            return FullSizeRun("limit", why=_TOO_SLOW)
        return FullSizeRun("judged", call)


def _judge(run: Run, session: Session, question: Question) -> FullSizeRun:
    call = _call(question)
    seconds = max(run.timeout_seconds, _SLOWER * question.reference_seconds)
    call.reply, _ = session.ask({"do": "in_full", **question.for_calls(1)}, seconds=seconds)
    session.end(late=True)
    if call.error is not None:
        if is_out_of_memory(call.error, None):
            return FullSizeRun("limit", why=_ran_out(run.memory_bytes))
        return FullSizeRun("judged", call)
    call.facts, _ = run.ask_referee("full_judge", about=call.reply["about"])
    return FullSizeRun("judged", call, call.facts["how"], int(call.facts.get("rows", 0)),
                       int(call.reply["changed"]))  # fmt: skip


def _call(question: Question) -> Call:
    slots = [item for item in question.inputs["slots"] if item]
    shapes = " ".join("×".join(map(str, item["shape"])) or "1" for item in slots)
    return Call(-1, "own", 0, shapes)


def _ran_out(budget: int) -> Text:
    size = human(budget, "B")
    return Text(
        f"it ran out of memory at the problem's own sizes: {size} may be used (--memory)",
        f"在问题自身的尺寸下内存不足：可用 {size}（--memory）",
    )
