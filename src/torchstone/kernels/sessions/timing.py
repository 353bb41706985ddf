"""Time taken from outside: the clock runs in this process, around a message and its answer.

A candidate can change every clock in its own process, and answer from memory what it was asked
before. So inputs are drawn from seeds that nobody knows, they arrive with the message that starts the
clock, and one answer of each turn is judged. The referee gives the time of the reference in the same
way, and the time of the same messages with nothing computed between them.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torchstone.core.text import Text
from torchstone.kernels.sessions.calls import WRONG
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import Session

_WARM = 2
"""Turns that fill caches and decide how many calls one message holds."""
_LEAST_SECONDS = 0.01
"""What the reference shall take for one message: well above the jitter of a socket."""
_MOST_CALLS = 32
_MOST_BYTES = 64 << 20


class UntimedError(Exception):
    """The timed calls did not do what was asked: a refusal."""

    def __init__(self, what: Text) -> None:
        super().__init__(what.en)
        self.what = what


@dataclass(frozen=True, slots=True)
class Turn:
    """One call on fresh inputs, in seconds, without the time of the messages."""

    candidate_seconds: float
    reference_seconds: float
    exchange_seconds: float
    """The messages alone, per call."""
    answer_bytes: int


def keep_on_one_processor(pid: int) -> None:
    """Threads of any library share one processor: as many as there are are no speed of a kernel.
    Threads that start later inherit it. A system without affinity leaves the process as it is."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, {max(os.sched_getaffinity(pid))})


@contextmanager
def on_one_processor(pid: int) -> Iterator[None]:
    """The process on one processor for a while."""
    before = os.sched_getaffinity(pid) if hasattr(os, "sched_getaffinity") else set()
    keep_on_one_processor(pid)
    try:
        yield
    finally:
        if before:
            os.sched_setaffinity(pid, before)


def time_in_turns(
    run: Run, session: Session, rounds: int, between: Callable[[], None] = lambda: None
) -> list[Turn]:
    """Candidate and reference by turns, each turn on inputs of its own.

    `between` is called once, between two turns that nobody can foretell.
    """
    turns: list[Turn] = []
    calls = 1
    chosen = _WARM + secrets.randbelow(rounds)
    for number in range(rounds + _WARM):
        if number == chosen:
            between()
        turn, sent = _turn(run, session, calls)
        if number >= _WARM:
            turns.append(turn)
            continue
        wanted = round(_LEAST_SECONDS / max(turn.reference_seconds, 1e-6))
        fitting = _MOST_BYTES // max((sent + turn.answer_bytes) // calls, 1)
        calls = max(1, min(wanted, fitting, _MOST_CALLS))
    return turns


def _turn(run: Run, session: Session, calls: int) -> tuple[Turn, int]:
    seeds = [secrets.randbits(31) for _ in range(calls)]
    header, buffers = run.ask_referee("fresh", seeds=seeds)
    question = {**header, "do": "timed", "number": secrets.randbits(31)}
    start = time.perf_counter()
    reply, data = session.ask(question, buffers, seconds=run.timeout_seconds)
    ours = time.perf_counter() - start
    _judged(run, question, reply, data)
    start = time.perf_counter()
    run.ask_referee(buffers=buffers, **question)
    theirs = time.perf_counter() - start
    start = time.perf_counter()
    run.ask_referee(buffers=buffers, **{**question, "do": "exchanged"})
    empty = time.perf_counter() - start
    size = sum(map(len, data)) // calls
    turn = Turn((ours - empty) / calls, (theirs - empty) / calls, empty / calls, size)
    return turn, sum(map(len, buffers))


def _judged(run: Run, question: dict[str, Any], reply: dict[str, Any], data: list[bytes]) -> None:
    """The answer to this message, and one answer in it that is looked at."""
    if "error" in reply:
        raise UntimedError(
            Text("raises an error on fresh inputs while it is timed", "计时时在新输入上抛出错误")
        )
    answers = reply.get("answers")
    calls = len(question["cases"])
    if reply.get("number") != question["number"] or not isinstance(answers, list):
        raise UntimedError(Text("does not answer the timed message", "没有回答计时消息"))
    if len(answers) != calls:
        raise UntimedError(Text("leaves timed inputs unanswered", "有计时输入未得到回答"))
    which = secrets.randbelow(calls)
    answer = answers[which]
    mine = data[answer["start"] : answer["start"] + answer["count"]]
    facts, _ = run.ask_referee("judge_fresh", mine, which=which, tree=answer["tree"])
    outputs = facts.get("outputs", [])
    if facts["form"] or any(key in item for item in outputs for key in WRONG):
        raise UntimedError(
            Text("answers fresh inputs wrongly while it is timed", "计时时对新输入的回答错误")
        )
