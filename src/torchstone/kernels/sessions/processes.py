"""The processes of one verification: the referee, the candidate's sessions, and how they are asked.

Everything is started when it is first asked for, and once.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from torchstone.kernels.c.linking import build_runner
from torchstone.kernels.c.source import CSource, Fault, read_c
from torchstone.kernels.candidate import WITH_KERNELS, Candidate
from torchstone.kernels.messages.facts import Facts, PlannedCase, Told
from torchstone.kernels.messages.to_candidate import (
    BuildModel,
    Built,
    BurstCase,
    BurstReply,
    CallModel,
    CallOptions,
    Mode,
    OpenCandidate,
    Reply,
    RunBurst,
)
from torchstone.kernels.messages.to_referee import (
    ExchangeElements,
    GiveInputs,
    GivenInputs,
    GiveWeights,
    JudgeAnswer,
    Loaded,
    LoadProblem,
    Opened,
    OpenReferee,
    Weights,
)
from torchstone.kernels.policy.kernel_bodies import kernels_alone
from torchstone.kernels.problem import Problem
from torchstone.kernels.sessions.arena import Arena, new_file
from torchstone.kernels.sessions.bad_problem import (
    LargeProblemError,
    bad_problem,
    slow_problem,
    too_large_to_keep,
)
from torchstone.kernels.sessions.calls import Burst, Call
from torchstone.kernels.sessions.limits import is_out_of_memory, ran_out
from torchstone.kernels.sessions.memory import memory_budget
from torchstone.kernels.sessions.workshop import Session, SessionError, Workshop, WorkshopError

A = TypeVar("A")
Progress = Callable[[int, int, str], None]
_SESSION_BYTES = 3 << 29
"""Address space of a candidate beyond its weights: the cut inputs of one call, and what torch maps."""
_SHARE = 2
"""It has this part of the budget at least, beside the referee: libraries keep plans and scratch memory for every
size that they have seen."""
_COPIES = 8
"""How often the weights are in memory while a model is made: as sent, as read, as made, of two seeds."""
_PATIENCE = 10
"""The reference may take so many times longer than a candidate: it is nobody's candidate."""
MOST_INTERPRETED = 1 << 16
"""Elements above which an interpreter gets smaller inputs from the start."""
MOST_OWN_SIZED = 1 << 23
"""The same where only the problem's own sizes may be asked: a few dozen cases of 32 MB are made."""
LARGER_INTERPRETED = 1 << 18
"""The same for a kernel that raises on inputs that were cut: a block of its own may not fit into them."""


class Processes:
    """A problem, a candidate, and the processes in which they meet."""

    def __init__(
        self, problem: Problem, candidate: Candidate, workshop: Workshop, *, seeds: int,
        timeout_seconds: float, memory_bytes: int = 0, progress: Progress | None = None,
        without_words: bool = False, own_layouts: bool = False,
        own_sizes: bool = False,
    ) -> None:  # fmt: skip
        self.problem = problem
        self.candidate = candidate
        self.workshop = workshop
        self.seeds = seeds
        self.timeout_seconds = timeout_seconds
        self.without_words = without_words
        """What a candidate says when it raises stays in its process: a model would read it."""
        self.own_layouts = own_layouts
        """Inputs lie in memory only as the problem lays them out."""
        self.own_sizes = own_sizes
        """Inputs are as large as the problem's; nothing is cut."""
        self.memory_bytes = memory_bytes or memory_budget()
        self.arena = Arena()
        self.walls: dict[str, str] = {}
        self._progress = progress
        self._sessions: list[Session] = []
        self._done = 0
        self._most_elements = 0
        """Elements of the problem's own inputs above which they are cut; 0: as usual."""

    def close(self) -> None:
        """End every session; a workshop that is gone has ended them already."""
        with contextlib.suppress(WorkshopError, OSError):
            for session in self._sessions:
                session.end(late=True)
        self.arena.close()

    # the referee

    @functools.cached_property
    def referee(self) -> Session:
        session = self.workshop.open(
            "referee", memory_bytes=self.memory_bytes, shared=self.arena.handles
        )
        self._sessions.append(session)
        opening = OpenReferee(
            self.problem.source, self.problem.framework, self.seeds, self.memory_bytes
        )
        self._refereed(session, opening, Opened)
        return session

    def _refereed(
        self, session: Session, question: object, kind: type[A], buffers: Sequence[bytes] = ()
    ) -> tuple[A, list[bytes]]:
        seconds = _PATIENCE * self.timeout_seconds
        try:
            answer, data = session.ask(question, kind, buffers, seconds=seconds)
        except SessionError as error:
            if error.ended.late:
                raise slow_problem(self.problem.name, seconds) from None
            if is_out_of_memory(None, error.ended):
                raise LargeProblemError(self.problem.name, self.memory_bytes) from None
            raise bad_problem(self.problem.name, error.ended.reason, 0) from None
        if isinstance(answer, Told):
            if is_out_of_memory(answer, None):
                raise LargeProblemError(self.problem.name, self.memory_bytes)
            said = ": ".join(part for part in (answer.kind, answer.text) if part)
            raise bad_problem(self.problem.name, said, answer.line)
        return answer, data

    def ask_referee(self, question: object, kind: type[A], buffers: Sequence[bytes] = ()) -> A:
        """The answer to a question; its class is `kind`."""
        return self.ask_for_data(question, kind, buffers)[0]

    def ask_for_data(
        self, question: object, kind: type[A], buffers: Sequence[bytes] = ()
    ) -> tuple[A, list[bytes]]:
        """The answer, and the buffers beside it."""
        return self._refereed(self.referee, question, kind, buffers)

    @functools.cached_property
    def facts(self) -> Loaded:
        """The problem's own inputs, as the referee planned them."""
        usual = MOST_OWN_SIZED if self.own_sizes else MOST_INTERPRETED if self.interpreted else 0
        found = self.ask_referee(LoadProblem(self._most_elements or usual), Loaded)
        if self.own_sizes and found.small:
            raise too_large_to_keep(self.problem.name, MOST_OWN_SIZED)
        self.seeds = found.seeds
        return found

    def use_larger_inputs(self) -> bool:
        """Cut the problem's own inputs less, for a kernel that refuses small ones; False where that is done already."""
        if not self.facts.small or not self.interpreted or self._most_elements:
            return False
        self._most_elements = LARGER_INTERPRETED
        self.referee.end(late=True)
        del self.referee, self.facts
        return True

    @property
    def interpreted(self) -> bool:
        """Runs under an interpreter or a simulator, where time means nothing."""
        source = self.candidate.source
        return self.candidate.implementation == "triton" or (
            self.candidate.implementation == "numba" and "cuda" in source
        )

    @property
    def packages(self) -> tuple[str, ...]:
        """What must be installed for this problem and this candidate."""
        own = {"triton": "triton", "numba": "numba"}.get(self.candidate.implementation)
        named = ["torch", own, "mindspore" if self.problem.framework == "mindspore" else None]
        return tuple(name for name in named if name)

    @property
    def has_kernels(self) -> bool:
        return self.candidate.implementation in WITH_KERNELS

    # the candidate

    @functools.cached_property
    def c_source(self) -> CSource | Fault | None:
        if self.candidate.implementation != "c":
            return None
        return read_c(self.candidate.source)

    @functools.cached_property
    def c_runner(self) -> tuple[str, str]:
        """Path of the program with the candidate's functions, and why there is none."""
        assert isinstance(self.c_source, CSource)
        path, said = build_runner(self.c_source, self.workshop)
        return str(path), said

    @contextlib.contextmanager
    def _functions(self, memory_bytes: int) -> Iterator[tuple[list[int], list[Session]]]:
        """A process with the candidate's C functions, and the handles through which it is asked."""
        if not isinstance(self.c_source, CSource):
            yield [], []
            return
        scratch = self.workshop.scratch()
        program = scratch / "runner"
        shutil.copy(self.c_runner[0], program)
        heap = new_file("heap")
        os.ftruncate(heap, memory_bytes)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            runner = self.workshop.start_program(
                [str(program)], scratch, shared=[theirs.fileno(), heap, self.arena.inputs],
                memory_bytes=2 * memory_bytes + self.memory_bytes,
            )  # fmt: skip
            yield [ours.fileno(), heap], [runner]
        os.close(heap)

    def open(
        self, mode: Mode | None = None, source: str = "", memory_bytes: int = 0
    ) -> tuple[Session, Opened | Told]:
        """A new process with the candidate in it, or with part of its source, and what it said."""
        scratch = self.workshop.scratch()
        mode = replace(mode or Mode(), without_words=self.without_words)
        known = self.c_source.prototypes if isinstance(self.c_source, CSource) else {}
        question = OpenCandidate(
            source or self.candidate.source, self.candidate.implementation, mode, known
        )
        usual = max(
            _SESSION_BYTES + _COPIES * self.facts.weights_bytes, self.memory_bytes // _SHARE
        )
        memory_bytes = memory_bytes or min(usual, self.memory_bytes)
        with self._functions(memory_bytes) as (handles, helpers):
            session = self.workshop.open(
                "candidate",
                scratch=scratch,
                memory_bytes=memory_bytes * (2 if helpers else 1),
                shared=(*self.arena.handles, *handles),
            )
        session.helpers += helpers
        self._sessions.append(session)
        answer, _ = session.ask(question, Opened, seconds=self.timeout_seconds)
        if isinstance(answer, Opened):
            self.walls = answer.walls
        return session, answer

    def open_and_build(
        self, mode: Mode | None = None, seeds: Iterable[int] = (0,), memory_bytes: int = 0
    ) -> tuple[Session, Told | None]:
        """A new process with models of some seeds in it; the error where one could not be made."""
        session, opened = self.open(mode, memory_bytes=memory_bytes)
        if isinstance(opened, Told):
            return session, opened
        for seed in seeds:
            built = self.build(session, seed)
            if isinstance(built, Told):
                return session, built
        return session, None

    def open_kernels(self) -> tuple[Session, Opened | Told]:
        """A new process with the candidate's kernels and none of its other code."""
        alone = kernels_alone(self.candidate.source, self.candidate.implementation)
        return self.open(Mode(kernels_only=True), source=alone)

    def build(self, session: Session, seed: int) -> Built | Told:
        """Make `ModelNew` with the weights of a seed."""
        weights, buffers = self.ask_for_data(GiveWeights(seed), Weights)
        answer, _ = session.ask(
            BuildModel(seed, weights), Built, buffers, seconds=self.timeout_seconds
        )
        if isinstance(answer, Told) and answer.memory:
            raise ran_out("ModelNew", self.memory_bytes)
        return answer

    def call(self, session: Session, case: PlannedCase, options: CallOptions | None = None) -> Call:
        """Run one case and have it judged; a session that ends is part of the answer."""
        given, buffers = self.ask_for_data(GiveInputs(case.number), GivenInputs)
        return self._call(session, case, given, buffers, options or CallOptions())

    def _call(
        self, session: Session, case: PlannedCase, given: GivenInputs, buffers: list[bytes],
        options: CallOptions,
    ) -> Call:  # fmt: skip
        call = Call(case, sent=[hashlib.sha256(item).hexdigest() for item in buffers])
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, max(self._done, 14 * self.seeds), case.family)
        question = CallModel(given.tree, given.seed, options)
        try:
            reply, data = session.ask(question, Reply, buffers, seconds=self.timeout_seconds)
        except SessionError as error:
            call.ended = error.ended
            self._refuse_limits(call)
            return call
        call.reply = Reply(reply) if isinstance(reply, Told) else reply
        self._refuse_limits(call)
        answer = call.reply.answer
        if answer is not None:
            count = sum(1 for leaf in answer.leaves if leaf.is_array)
            call.digest = hashlib.sha256(
                b"".join([repr(answer).encode(), *data[:count]])
            ).hexdigest()
            call.records = data[count:]
            if options.record_launches:
                call.answer_data = data[:count]
            call.facts = self.ask_referee(JudgeAnswer(case.number, answer), Facts, data[:count])
        return call

    def _refuse_limits(self, call: Call) -> None:
        """A LimitError where memory ran out; other sizes and layouts may be refused for any reason."""
        if is_out_of_memory(call.error, call.ended) and not call.refused:
            raise ran_out(call.name, self.memory_bytes)

    def call_exchanged(self, session: Session, case: PlannedCase) -> tuple[Call, bool]:
        """The case with two elements of each input exchanged, in the memory of the last call.

        Beside the call: whether another answer is right now.
        """
        given, buffers = self.ask_for_data(ExchangeElements(case.number), GivenInputs)
        case = replace(case, number=given.number, family="swapped")
        return self._call(session, case, given, buffers, CallOptions(reuse=True)), given.differs

    def burst(
        self, session: Session, cases: list[PlannedCase], setting: str, times: int = 0
    ) -> Burst:
        """Run cases with nothing between them, under a setting, and have all of them judged."""
        items: list[BurstCase] = []
        buffers: list[bytes] = []
        for case in cases:
            given, data = self.ask_for_data(GiveInputs(case.number), GivenInputs)
            items.append(BurstCase(given.tree, given.seed, len(buffers)))
            buffers += data
        burst = Burst(setting)
        question = RunBurst(items, setting, times)
        try:
            reply, data = session.ask(question, BurstReply, buffers, seconds=self.timeout_seconds)
        except SessionError as error:
            burst.ended = error.ended
            if is_out_of_memory(None, error.ended):
                raise ran_out(f"burst, {setting}", self.memory_bytes) from None
            return burst
        if isinstance(reply, Told):
            burst.calls = [Call(cases[0], Reply(reply))]
            self._refuse_limits(burst.calls[0])
            return burst
        burst.tires, burst.ring = reply.tires, reply.ring
        burst.overlapping = [cases[i].family for i in reply.overlapping]
        for case, item in zip(cases, reply.answers, strict=True):
            call = Call(case, Reply(item.error, item.answer))
            self._refuse_limits(call)
            if item.answer is not None:
                mine = data[item.start : item.start + item.count]
                call.facts = self.ask_referee(JudgeAnswer(case.number, item.answer), Facts, mine)
            burst.calls.append(call)
        return burst
