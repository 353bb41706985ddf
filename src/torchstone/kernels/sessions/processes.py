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
from collections.abc import Callable, Iterator
from typing import Any

from torchstone.kernels.c.linking import build_runner
from torchstone.kernels.c.source import CSource, Fault, read_c
from torchstone.kernels.candidate import WITH_KERNELS, Candidate
from torchstone.kernels.policy.kernel_bodies import kernels_alone
from torchstone.kernels.problem import Problem
from torchstone.kernels.sessions.arena import Arena, new_file
from torchstone.kernels.sessions.bad_problem import bad_problem, large_problem, slow_problem
from torchstone.kernels.sessions.calls import Burst, Call, new_call
from torchstone.kernels.sessions.limits import is_out_of_memory
from torchstone.kernels.sessions.memory import memory_budget
from torchstone.kernels.sessions.workshop import Session, SessionError, Workshop, WorkshopError

Progress = Callable[[int, int, str], None]
_SESSION_BYTES = 3 << 29
"""Address space of a candidate beyond its weights: the cut inputs of one call, and what torch maps."""
_COPIES = 8
"""How often the weights are in memory while a model is made: as sent, as read, as made, of two seeds."""
_PATIENCE = 10
"""The reference may take so many times longer than a candidate: it is nobody's candidate."""
MOST_INTERPRETED = 1 << 16
"""Elements above which an interpreter gets smaller inputs from the start."""


class Processes:
    """A problem, a candidate, and the processes in which they meet."""

    def __init__(
        self, problem: Problem, candidate: Candidate, workshop: Workshop, *, seeds: int,
        timeout_seconds: float, memory_bytes: int = 0, progress: Progress | None = None,
        without_words: bool = False, own_layouts: bool = False,
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
        self.memory_bytes = memory_bytes or memory_budget()
        self.arena = Arena()
        self.question: Any = None
        """The problem's own inputs in shared memory, once somebody has asked for them."""
        self.walls: dict[str, str] = {}
        self._progress = progress
        self._sessions: list[Session] = []
        self._done = 0

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
        self._refereed(session, {"do": "open", "source": self.problem.source,
                                 "framework": self.problem.framework, "seeds": self.seeds,
                                 "memory_bytes": self.memory_bytes})  # fmt: skip
        return session

    def _refereed(
        self, session: Session, header: dict[str, Any], buffers: list[bytes] | None = None
    ) -> tuple[dict[str, Any], list[bytes]]:
        try:
            answer, data = session.ask(
                header, buffers or [], seconds=_PATIENCE * self.timeout_seconds
            )
        except SessionError as error:
            if error.ended.late:
                seconds = _PATIENCE * self.timeout_seconds
                raise slow_problem(self.problem.name, seconds) from None
            if is_out_of_memory(None, error.ended):
                raise large_problem(self.problem.name, self.memory_bytes) from None
            raise bad_problem(self.problem.name, error.ended.reason, 0) from None
        if "problem_error" in answer:
            told = answer["problem_error"]
            if is_out_of_memory(told, None):
                raise large_problem(self.problem.name, self.memory_bytes)
            said = ": ".join(part for part in (told["kind"], told["text"]) if part)
            raise bad_problem(self.problem.name, said, told["line"])
        return answer, data

    def ask_referee(
        self, do: str, buffers: list[bytes] | None = None, **header: Any
    ) -> tuple[dict[str, Any], list[bytes]]:
        """A question to the referee."""
        return self._refereed(self.referee, {"do": do, **header}, buffers)

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """The problem's own inputs, as the referee planned them."""
        most = MOST_INTERPRETED if self.interpreted else 0
        found = self.ask_referee("load", most_elements=most)[0]
        self.seeds = int(found["seeds"])
        return found

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
        self, mode: dict[str, Any], source: str = "", memory_bytes: int = 0
    ) -> tuple[Session, dict[str, Any]]:
        """A new process with the candidate in it, or with part of its source, and what it said."""
        scratch = self.workshop.scratch()
        mode = {**mode, "without_words": self.without_words}
        header: dict[str, Any] = {
            "do": "open", "source": source or self.candidate.source, "mode": mode,
            "implementation": self.candidate.implementation,
        }  # fmt: skip
        if isinstance(self.c_source, CSource):
            header["prototypes"] = self.c_source.prototypes
        usual = _SESSION_BYTES + _COPIES * int(self.facts["weights_bytes"])
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
        answer, _ = session.ask(header, seconds=self.timeout_seconds)
        self.walls = answer.get("walls", self.walls)
        return session, answer

    def open_kernels(self) -> tuple[Session, dict[str, Any]]:
        """A new process with the candidate's kernels and none of its other code."""
        alone = kernels_alone(self.candidate.source, self.candidate.implementation)
        return self.open({"kernels_only": True}, source=alone)

    def build(self, session: Session, seed: int) -> dict[str, Any]:
        """Make `ModelNew` with the weights of a seed."""
        tree, buffers = self.ask_referee("weights", seed=seed)
        answer, _ = session.ask({"do": "build", "seed": seed, "tree": tree}, buffers,
                                seconds=self.timeout_seconds)  # fmt: skip
        return answer

    def call(self, session: Session, case: dict[str, Any], **options: Any) -> Call:
        """Run one case and have it judged; a session that ends is part of the answer."""
        tree, buffers = self.ask_referee("inputs", number=case["number"])
        return self._call(session, case, tree, buffers, options)

    def _call(
        self, session: Session, case: dict[str, Any], tree: dict[str, Any], buffers: list[bytes],
        options: dict[str, Any],
    ) -> Call:  # fmt: skip
        call = new_call(case)
        call.sent = [hashlib.sha256(item).hexdigest() for item in buffers]
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, max(self._done, 14 * self.seeds), case["family"])
        try:
            call.reply, data = session.ask(
                {"do": "call", "tree": tree["tree"], "seed": tree["seed"], **options}, buffers,
                seconds=self.timeout_seconds,
            )  # fmt: skip
        except SessionError as error:
            call.ended = error.ended
            return call
        if call.error is None:
            answer = call.reply["tree"]
            count = sum(1 for leaf in answer["leaves"] if "array" in leaf)
            call.digest = hashlib.sha256(
                b"".join([repr(answer).encode(), *data[:count]])
            ).hexdigest()
            call.records = data[count:]
            if "record_launches" in options:
                call.answer_data = data[:count]
            call.facts, _ = self.ask_referee(
                "judge", data[:count], number=case["number"], tree=answer
            )
        return call

    def call_exchanged(self, session: Session, case: dict[str, Any]) -> tuple[Call, bool]:
        """The case with two elements of each input exchanged, in the memory of the last call.

        Beside the call: whether another answer is right now.
        """
        tree, buffers = self.ask_referee("swapped", number=case["number"])
        case = {**case, "number": tree["number"], "family": "swapped"}
        return self._call(session, case, tree, buffers, {"reuse": True}), bool(tree["differs"])

    def burst(
        self, session: Session, cases: list[dict[str, Any]], setting: str, times: int = 0
    ) -> Burst:
        """Run cases with nothing between them, under a setting, and have all of them judged."""
        given: list[dict[str, Any]] = []
        buffers: list[bytes] = []
        for case in cases:
            tree, data = self.ask_referee("inputs", number=case["number"])
            given.append({"tree": tree["tree"], "seed": tree["seed"], "start": len(buffers)})
            buffers += data
        burst = Burst(setting)
        header = {"do": "burst", "cases": given, "setting": setting, "times": times}
        try:
            reply, data = session.ask(header, buffers, seconds=self.timeout_seconds)
        except SessionError as error:
            burst.ended = error.ended
            return burst
        if "error" in reply:
            burst.calls = [new_call(cases[0], reply={"error": reply["error"]})]
            return burst
        burst.tires, burst.ring = bool(reply.get("tires")), bool(reply.get("ring"))
        burst.overlapping = [cases[i]["family"] for i in reply["overlapping"]]
        for case, answer in zip(cases, reply["answers"], strict=True):
            call = new_call(case, reply=answer)
            if call.error is None:
                mine = data[answer["start"] : answer["start"] + answer["count"]]
                call.facts, _ = self.ask_referee(
                    "judge", mine, number=case["number"], tree=answer["tree"]
                )
            burst.calls.append(call)
        return burst

    def as_case(self, call: Call) -> dict[str, Any]:
        """The case of a call, to call it again."""
        return {"number": call.number, "family": call.family, "seed": call.seed,
                "shapes": call.shapes, "resized": call.resized, "sizes": call.sizes}  # fmt: skip
