"""Time taken from outside: the clock of the candidate's process, read in this one, around a message.

It counts CPU time, so that what else runs on the machine does not count.

A candidate can change every clock in its own process, and answer from memory what it was asked
before. So inputs are drawn from seeds that nobody knows, at the problem's own sizes, into shared memory
that a candidate maps when the clock runs; its answers lie in shared memory when it stops, the process is
held there, and one of them is judged. The referee gives the time of the reference in the same way,
and the time of finding inputs and handing answers over with nothing computed between them.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torchstone.core.text import Text
from torchstone.kernels.messages.facts import Facts, Told
from torchstone.kernels.messages.to_candidate import AskNothing, TimeCalls, Timed
from torchstone.kernels.messages.to_referee import (
    CheckFull,
    Done,
    FillFull,
    TimeExchange,
    TimeReference,
)
from torchstone.kernels.sessions.effort import clock_of
from torchstone.kernels.sessions.limits import is_out_of_memory, ran_out
from torchstone.kernels.sessions.question import Question
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import Session

_WARM = 2
"""Turns that fill caches and decide how many calls one message holds."""
_LEAST_SECONDS = 0.02
"""What each of the two shall take for one message: well above the jitter of a socket and a scheduler."""
_ENOUGH_SECONDS = 30.0
"""When so much has been spent on turns, three of them are enough."""
_FEWEST_TURNS = 3


class UntimedError(Exception):
    """The timed calls did not do what was asked: a refusal."""

    def __init__(self, what: Text) -> None:
        super().__init__(what.en)
        self.what = what


@dataclass(frozen=True, slots=True)
class Calls:
    """How many calls one message holds, for each of the two: the faster one needs more of them."""

    candidate: int = 1
    reference: int = 1


@dataclass(frozen=True, slots=True)
class Turn:
    """One call on fresh inputs, in seconds, without the time of the messages."""

    candidate_seconds: float
    reference_seconds: float
    exchange_seconds: float
    """Finding inputs and handing answers over, per call."""


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


@dataclass(slots=True)
class Stopwatch:
    """One candidate and the question that it is timed on."""

    run: Run
    session: Session
    question: Question

    def take(self, calls: Calls, judged: bool) -> Turn:
        """One turn: candidate, judgement, reference, exchange."""
        ask = self.run.ask_referee
        own, other = calls.candidate, calls.reference
        ask(FillFull([secrets.randbits(31) for _ in range(max(own, other))]), Done)
        number = secrets.randbits(31)
        question = TimeCalls(number, self.question.for_calls(own))
        start = self._clock()
        reply, _ = self.session.ask(question, Timed, seconds=self.limit_seconds(own))
        for pid in self.session.pids:  # what is not there now was not computed in time
            os.kill(pid, signal.SIGSTOP)
        ours = self._clock() - start
        try:
            if isinstance(reply, Told) and is_out_of_memory(reply, None):
                raise ran_out("timing", self.run.memory_bytes)
            if isinstance(reply, Told):
                raise UntimedError(_RAISES)
            if reply.number != number:
                raise UntimedError(_SILENT)
            if judged and not ask(CheckFull(secrets.randbelow(own)), Facts).right:
                raise UntimedError(_WRONG)
            theirs = self._referee_seconds(TimeReference(other))
            empty = self._referee_seconds(TimeExchange(other))
            has_helpers = bool(self.session.helpers)
            around = (
                empty if own == other or has_helpers else self._referee_seconds(TimeExchange(own))
            )
        finally:
            for pid in self.session.pids:
                os.kill(pid, signal.SIGCONT)
        ours -= self._asking_seconds(own) if has_helpers else around
        return Turn(ours / own, (theirs - empty) / other, empty / other)

    def _clock(self) -> float:
        """Of the process that computes: the candidate's, or that of its functions where they have one.

        What else a candidate with functions of its own computes is no secret of the clock: it is refused.
        """
        helpers = [item.pid for item in self.session.helpers]
        return sum(map(clock_of, helpers or [self.session.pid]))

    def _asking_seconds(self, calls: int) -> float:
        """What being asked costs a process of functions, with nothing to do."""
        times = calls * self.run.main.own[0].reply.launches
        start = self._clock()
        self.session.ask(AskNothing(times), Done, seconds=self.limit_seconds(calls))
        return self._clock() - start

    def _referee_seconds(self, question: TimeReference | TimeExchange) -> float:
        start = clock_of(self.run.referee.pid)
        self.run.ask_referee(question, Done)
        return clock_of(self.run.referee.pid) - start

    def limit_seconds(self, calls: int) -> float:
        """CPU time that a message may take: a call's own for each, as far as calls are short."""
        return self.run.timeout_seconds + calls * _SHORT_SECONDS


_SHORT_SECONDS = 0.1
_RAISES = Text("raises an error on fresh inputs while it is timed", "计时时在新输入上抛出错误")
_SILENT = Text("does not answer the timed message", "没有回答计时消息")
_WRONG = Text("answers fresh inputs wrongly while it is timed", "计时时对新输入的回答错误")


def time_in_turns(
    watch: Stopwatch, rounds: int, between: Callable[[], None] = lambda: None
) -> list[Turn]:
    """Candidate and reference by turns, each turn on inputs of its own.

    `between` is called once, between two turns that nobody can foretell.
    """
    turns: list[Turn] = []
    calls = Calls()
    chosen = secrets.randbelow(_FEWEST_TURNS)
    begun = time.monotonic()
    for number in range(rounds + _WARM):
        large = watch.run.facts.small
        if number == chosen + _WARM:
            between()
        turn = watch.take(calls, judged=not large or number == chosen + _WARM)
        if number < _WARM:
            calls = _calls_for(turn, watch.question.most_calls)
            continue
        turns.append(turn)
        spent = time.monotonic() - begun
        if len(turns) >= _FEWEST_TURNS and spent > _ENOUGH_SECONDS:
            break
    return turns


def _calls_for(turn: Turn, most: int) -> Calls:
    """As many calls of each as are long enough for a clock."""
    taken = (turn.candidate_seconds, turn.reference_seconds)
    wanted = (round(_LEAST_SECONDS / max(seconds, 1e-6)) for seconds in taken)
    return Calls(*(max(1, min(count, most)) for count in wanted))
