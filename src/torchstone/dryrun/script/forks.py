"""The program goes on twice: at a branch on a tensor's value, and to try a fix.

A copy of the process takes the other way; the original waits for it, so that records come in
order and the machine is not flooded.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import struct
from collections.abc import Callable
from typing import Protocol

from torchstone.core.codec import from_data, to_data
from torchstone.core.text import Text
from torchstone.dryrun.harness import check_can_copy
from torchstone.dryrun.record import Assumption, Record
from torchstone.dryrun.script.budget import start_clocks
from torchstone.dryrun.session import Session
from torchstone.observe.where import PROGRAM

TRIAL_SECONDS = 15.0
"""A fix that has not come to the next optimizer step by then is judged by how far it came."""

_fork = os.fork


class Sink(Protocol):
    """Takes the record of a path when it ends."""

    def put(self, record: Record) -> None: ...


class PipeSink:
    """Puts records on a pipe, a line of JSON each."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def put(self, record: Record) -> None:
        line = json.dumps(to_data(record), ensure_ascii=False, allow_nan=False)
        data = line.encode("utf-8", "surrogatepass") + b"\n"
        while data:
            data = data[os.write(self._handle, data) :]


class Forks:
    """Copies of the running program, within a budget that all copies share."""

    def __init__(self, session: Session, sink: Sink) -> None:
        self.session = session
        self.sink = sink
        self.in_trial = False
        self.on_trial: Callable[[], None] = lambda: None
        """Is called in a copy that tries a fix, before it goes on."""
        self._shared = mmap.mmap(-1, 8)  # shared with all copies
        self._shared[:4] = struct.pack("i", 1)
        self._asked: set[object] = set()

    def choose(self, question: str, usual: bool) -> bool:
        """The answer to a question of the program: one here, the other in a copy of it."""
        session = self.session
        spot = PROGRAM.here(2)
        known = spot in self._asked
        self._asked.add(spot)
        of_others = bool(PROGRAM.library(2)) or PROGRAM.is_asked_by_torch(2)
        if known or self.in_trial or of_others or not self._take_path():
            session.assume(question, str(usual))
            return usual
        number = self._number()
        check_can_copy()
        child = _fork()
        if child:
            _wait(child)
            session.assume(
                question,
                Text(f"{usual} (the other way was run as path {number})",
                     f"{usual}（另一分支作为路径 {number} 运行）"),
            )  # fmt: skip
            return usual
        other = not usual
        session.take_path(number, Assumption(question, str(other), spot))
        session.assume(question, str(other))
        start_clocks(session.settings.max_seconds)
        return other

    def trial(self) -> Record | None:
        """None in the copy, which goes on; its record in the original, when it has ended."""
        read, write = os.pipe()
        check_can_copy()
        child = _fork()
        if child == 0:
            os.close(read)
            self.in_trial = True
            self.sink = PipeSink(write)
            self.session.become_trial()
            start_clocks(TRIAL_SECONDS)
            self.on_trial()
            return None
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            data = pipe.read()
        _wait(child)
        if not data:
            return Record(ending="error", ending_detail="died")
        return from_data(Record, json.loads(data.decode("utf-8", "surrogatepass")), "trial")

    def _take_path(self) -> bool:
        used = struct.unpack("i", self._shared[:4])[0]
        if used >= self.session.settings.max_paths:
            return False
        self._shared[:4] = struct.pack("i", used + 1)
        return True

    def _number(self) -> int:
        return int(struct.unpack("i", self._shared[:4])[0]) - 1


def _wait(child: int) -> None:
    try:
        os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
