"""The problem's own inputs at their own sizes: once through the reference, once through the candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torchstone.core.quantity import human
from torchstone.core.text import NOTHING, Text
from torchstone.kernels.messages.facts import Facts, PlannedCase, Told
from torchstone.kernels.messages.to_candidate import Reply, RunInFull
from torchstone.kernels.messages.to_referee import (
    AnswerFull,
    Done,
    FillFull,
    JudgeFull,
    Measured,
    MeasureFull,
    Room,
)
from torchstone.kernels.sessions.bad_problem import LargeProblemError
from torchstone.kernels.sessions.calls import Call
from torchstone.kernels.sessions.effort import cpu_seconds_of
from torchstone.kernels.sessions.limits import MORE_MEMORY, is_out_of_memory
from torchstone.kernels.sessions.question import Question
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import Session, SessionError

_MOST_CALLS = 4096
_MOST_BYTES = 64 << 20
"""Memory for several draws, where one draw is small: enough calls for a clock, and still in no one's way."""
_SLOWER = 10
"""How many times longer than the reference a candidate may take where that is more than its limit."""


MORE_TIME = Text(
    "give it more time with --timeout, or verify it on a GPU",
    "请用 --timeout 提供更多时间，或在 GPU 上验证",
)


@dataclass(frozen=True, slots=True)
class FullSizeRun:
    """What became of the run; `why` says what kept it from being made."""

    status: Literal["judged", "limit"]
    call: Call | None = None
    why: Text = NOTHING
    close: Text = MORE_MEMORY
    """What to do about it."""


_TOO_SLOW = Text(
    "the interpreter takes too long for the problem's own sizes (--timeout)",
    "解释器在问题自身尺寸下耗时过长（--timeout）",
)
_OWN_SHARE = 0.8
"""Of the time for a call, what an interpreter has for its programs: handing over takes some, too."""


def prepare_question(run: Run) -> Question | Text:
    """Inputs filled in and the reference's answer known, once for each verdict; or what is in the way."""
    if run.full is None:
        try:
            run.full = _prepare(run)
        except LargeProblemError:
            run.full = _ran_out(run.memory_bytes)
    return run.full


def _prepare(run: Run) -> Question | Text:
    measured = run.ask_referee(MeasureFull(_MOST_BYTES, _MOST_CALLS), Measured)
    inputs = measured.inputs
    if 2 * inputs.size_bytes > run.memory_bytes:
        return _too_large(2 * inputs.size_bytes, run.memory_bytes)
    run.arena.make_room_for_inputs(inputs.size_bytes)
    run.ask_referee(FillFull([0]), Done)
    run.arena.seal_inputs()
    before = cpu_seconds_of(run.referee.pid)
    outputs = run.ask_referee(AnswerFull(judged=run.facts.small), Room).outputs
    needed = inputs.size_bytes + 2 * outputs.size_bytes
    if needed > run.memory_bytes:
        return _too_large(needed, run.memory_bytes)
    run.arena.make_room_for_outputs(outputs.size_bytes)
    return Question(inputs, outputs, measured.tree, cpu_seconds_of(run.referee.pid) - before)


def _too_large(needed: int, budget: int) -> Text:
    one, two = human(needed, "B"), human(budget, "B")
    return Text(
        f"the problem's own inputs need at least {one} of memory and {two} may be used (--memory)",
        f"问题自身的输入至少需要 {one} 内存，而可用 {two}（--memory）",
    )


def run_in_full(run: Run) -> FullSizeRun:
    """Run and judge; a limit of this machine is no fault of the candidate."""
    question = prepare_question(run)
    if isinstance(question, Text):
        return FullSizeRun("limit", why=question)
    try:
        session, error = run.open_and_build(memory_bytes=run.memory_bytes)
        if error is not None:
            return FullSizeRun("limit", why=Text("it does not load again", "无法再次加载"))
        return _judge(run, session, question)
    except SessionError as late:
        if is_out_of_memory(None, late.ended):
            return FullSizeRun("limit", why=_ran_out(run.memory_bytes))
        if run.interpreted and late.ended.late:
            return FullSizeRun("limit", why=_TOO_SLOW, close=MORE_TIME)
        return FullSizeRun("judged", Call(_case(question), ended=late.ended))


def _judge(run: Run, session: Session, question: Question) -> FullSizeRun:
    seconds = max(run.timeout_seconds, _SLOWER * question.reference_seconds)
    asked = RunInFull(_OWN_SHARE * seconds, question.for_calls(1))
    reply, _ = session.ask(asked, Reply, seconds=seconds)
    session.end(late=True)
    reply = Reply(reply) if isinstance(reply, Told) else reply
    call = Call(_case(question), reply)
    if reply.error is not None or reply.answer is None:
        if is_out_of_memory(reply.error, None):
            return FullSizeRun("limit", why=_ran_out(run.memory_bytes))
        return FullSizeRun("judged", call)
    left_out, programs = reply.left_out, reply.programs
    if left_out and reply.launches > 1:
        return FullSizeRun("limit", why=_cut(programs - left_out, programs), close=MORE_TIME)
    try:
        call.facts = run.ask_referee(JudgeFull(reply.answer, bool(left_out)), Facts)
    except LargeProblemError:
        return FullSizeRun("limit", why=_ran_out(run.memory_bytes))
    if left_out and call.right:
        judged = bool(call.facts.outputs)
        why = _cut(programs - left_out, programs, judged)
        return FullSizeRun("limit", why=why, close=MORE_TIME)
    return FullSizeRun("judged", call)


def _case(question: Question) -> PlannedCase:
    return PlannedCase(-1, "own", 0, question.shapes)


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
