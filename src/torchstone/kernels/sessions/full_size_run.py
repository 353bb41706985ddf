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


MORE_MEMORY = Text(
    "give it more memory with --memory, or verify it on a machine that has more",
    "请用 --memory 提供更多内存，或在内存更大的机器上验证",
)
MORE_TIME = Text(
    "give it more time with --timeout, or verify it on a GPU",
    "请用 --timeout 提供更多时间，或在 GPU 上验证",
)


@dataclass(frozen=True, slots=True)
class FullSizeRun:
    """What became of the run; `why` says what kept it from being made."""

    status: Literal["judged", "limit"]
    call: Call | None = None
    how: str = ""
    rows: int = 0
    changed_input: int = -1
    why: Text = NOTHING
    close: Text = MORE_MEMORY
    """What to do about it."""


_TOO_SLOW = Text(
    "the interpreter takes too long for the problem's own sizes (--timeout)",
    "解释器在问题自身尺寸下耗时过长（--timeout）",
)
_OWN_SHARE = 0.8
"""Of the time for a call, what an interpreter has for its programs: handing over takes some, too."""


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
            return FullSizeRun("limit", why=_TOO_SLOW, close=MORE_TIME)
        return FullSizeRun("judged", call)


def _judge(run: Run, session: Session, question: Question) -> FullSizeRun:
    call = _call(question)
    seconds = max(run.timeout_seconds, _SLOWER * question.reference_seconds)
    header = {"do": "in_full", "seconds": _OWN_SHARE * seconds, **question.for_calls(1)}
    call.reply, _ = session.ask(header, seconds=seconds)
    session.end(late=True)
    if call.error is not None:
        if is_out_of_memory(call.error, None):
            return FullSizeRun("limit", why=_ran_out(run.memory_bytes))
        return FullSizeRun("judged", call)
    left_out, programs = int(call.reply["left_out"]), int(call.reply["programs"])
    if left_out and int(call.reply["launches"]) > 1:
        return FullSizeRun("limit", why=_cut(programs - left_out, programs), close=MORE_TIME)
    call.facts, _ = run.ask_referee("full_judge", about=call.reply["about"], partial=bool(left_out))
    if left_out and call.right:
        asked = bool(call.facts["outputs"])
        return FullSizeRun("limit", why=_cut(programs - left_out, programs, asked), close=MORE_TIME)
    return FullSizeRun("judged", call, call.facts["how"], int(call.facts.get("rows", 0)),
                       int(call.reply["changed"]))  # fmt: skip


def _call(question: Question) -> Call:
    slots = [item for item in question.inputs["slots"] if item]
    shapes = " ".join("×".join(map(str, item["shape"])) or "1" for item in slots)
    return Call(-1, "own", 0, shapes)


def _cut(ran: int, programs: int, right: bool = False) -> Text:
    """How many programs there was time for, and that what they wrote is right, where that was asked."""
    en, zh = ("; what they wrote is right", "；其写入的结果正确") if right else ("", "")
    return Text(
        f"in the time allowed (--timeout) {ran:,} of {programs:,} programs ran{en}: whether the others write "
        "the rest is not known",
        f"在允许的时间内（--timeout）运行了 {programs:,} 个程序中的 {ran:,} 个{zh}；其余程序是否写满输出未知",
    )


def _ran_out(budget: int) -> Text:
    size = human(budget, "B")
    return Text(
        f"it ran out of memory at the problem's own sizes: {size} may be used (--memory)",
        f"在问题自身的尺寸下内存不足：可用 {size}（--memory）",
    )
