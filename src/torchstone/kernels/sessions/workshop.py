"""The workshop: one process that is ready to fork, and the sessions that run in its children."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from torchstone.core.codec import from_data, to_data
from torchstone.kernels.harness.zygote import FOLDER
from torchstone.kernels.messages.facts import Told
from torchstone.kernels.messages.to_zygote import (
    Fork,
    Forked,
    Program,
    Reap,
    Reaped,
    Started,
)
from torchstone.kernels.sessions.effort import begin_effort
from torchstone.kernels.sessions.wire import WireError, receive, send
from torchstone.sandbox.cell import NOBODY, Limits, is_system_root
from torchstone.sandbox.namespaces import namespaces

A = TypeVar("A")
Buffers = Sequence[bytes | memoryview]
_PACKAGE_HOME = Path(__file__).resolve().parents[3]
_OUTPUT_KEPT_BYTES = 4000
_PROGRAM_FILE_BYTES = 256 << 20
START_SECONDS = 180.0
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from torchstone.kernels.harness.zygote import main; "
    "main(int(sys.argv[2]), sys.argv[3], sys.argv[4:])"
)
# Loaded before the children close their cells: their walls hide this package.
_HARNESS = "torchstone.kernels.harness"
_SERVERS = {
    "referee": f"{_HARNESS}.judging.referee",
    "candidate": f"{_HARNESS}.calling.candidate_server",
    "on_device": f"{_HARNESS}.kits.on_device",
    "triton_device": f"{_HARNESS}.kits.triton_device",
}
"""By role: the module that serves in a session."""
_LOADED = (*_SERVERS.values(), f"{_HARNESS}.kits.triton_kit", f"{_HARNESS}.kits.numba_kit")
"""Loaded once, before a session is forked."""
TIME_IS_UP = "time is up"
_SESSION_SECONDS = 4 * 3600
"""CPU time of a whole session: every question has a limit of its own, this ends what nobody asks."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a session ended: `reason` is the same on every run."""

    reason: str
    output: str = ""
    """The end of what it printed; no part of any judgement."""
    limit_seconds: float = 0.0
    """What it was given to answer; 0 where nothing was asked."""

    @property
    def late(self) -> bool:
        return self.reason == TIME_IS_UP


@dataclass(frozen=True, slots=True)
class Finished:
    """A program of the system that ran in a cell."""

    reason: str
    """How it ended; empty when it ended well."""
    output: str
    """All that it printed."""


class SessionError(Exception):
    """A session that ended instead of answering."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended.reason)
        self.ended = ended


class WorkshopError(Exception):
    """Our own machinery failed: what follows would be no verdict."""


@dataclass(slots=True)
class Spent:
    """CPU time of a workshop: loading, and its children."""

    cpu_seconds: float = 0.0


@dataclass(slots=True)
class Session:
    """One child process and the socket to it."""

    pid: int
    channel: socket.socket
    workshop: Workshop
    printed: Path
    ended: Ended | None = None
    helpers: list[Session] = field(default_factory=list)
    """Programs that work for it, and end with it."""

    @property
    def pids(self) -> tuple[int, ...]:
        return self.pid, *(item.pid for item in self.helpers)

    def ask(
        self, question: object, answer: type[A], buffers: Buffers = (), *, seconds: float
    ) -> tuple[A | Told, list[bytes]]:
        """Send a question and wait for its answer, or an error in its place; a SessionError when none comes."""
        return self.exchange(question, (answer, Told), buffers, seconds=seconds)

    def exchange(
        self, question: object, kinds: Sequence[type[A]], buffers: Buffers = (), *, seconds: float
    ) -> tuple[A, list[bytes]]:
        """Send a message and wait for one of these kinds."""
        if self.ended is not None:
            raise SessionError(self.ended)
        try:
            self.channel.settimeout(None)
            effort = begin_effort(self.pids, seconds)
            send(self.channel, question, buffers, effort.is_up)
            return receive(self.channel, kinds, effort.is_up)
        except WireError as error:
            late = TIME_IS_UP in str(error)
            raise SessionError(self.end(late, str(error), seconds)) from None

    def end(self, late: bool = False, why: str = "", limit_seconds: float = 0.0) -> Ended:
        """Kill the whole group and say how the process ended."""
        if self.ended is None:
            self.channel.close()
            by_itself = not late and self.workshop.pause_for(self.pid)
            # In an own session no group has this number any more, at worst.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            status = self.workshop.reap(self.pid)
            text = self.printed.read_bytes()[-_OUTPUT_KEPT_BYTES:].decode("utf-8", "replace")
            reason = TIME_IS_UP if late else _reason(status, why, by_itself)
            for helper in self.helpers:
                of_helper = helper.end(late).reason
                if of_helper.startswith("killed by") and not late:
                    reason = of_helper  # the process ended because its helper had
            self.ended = Ended(reason, text, limit_seconds)
        return self.ended

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def _reason(status: int, why: str, by_itself: bool) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return "CPU time is up"
        if number != signal.SIGKILL or by_itself or not why:
            return f"killed by {signal.Signals(number).name}"
        return why
    code = os.WEXITSTATUS(status)
    return f"exit code {code}" if code else why or "ended"


@dataclass(slots=True)
class Workshop:
    """A process with packages loaded, started when it is first needed; a context manager."""

    preload: tuple[str, ...] = ("numpy", "torch")
    device: str = ""
    """The device that its sessions may use; on the host, named "cpu" or not, interpreters are on."""
    loaded: Mapping[str, str] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    network: str = ""
    root: str = ""
    """What keeps paths of the machine out of sight."""
    _process: subprocess.Popen[bytes] | None = None
    _control: socket.socket | None = None
    _home: Path | None = None
    _sessions: int = 0

    def start(self) -> None:
        """Start the process and wait until it has loaded its packages; once is enough."""
        if self._process is not None:
            return
        ours, theirs = socket.socketpair()
        self._home = Path(tempfile.mkdtemp(prefix=FOLDER))
        self._home.chmod(0o711)  # entered by processes that are not root; its names are not listed
        wall = namespaces()
        self.network = "own network namespace" if wall else "none"
        with theirs:
            self._process = subprocess.Popen(
                [*wall, sys.executable, "-I", "-c", _START, str(_PACKAGE_HOME),
                 str(theirs.fileno()), self.device, *self.preload, *_LOADED],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=open(self._home / "zygote.txt", "wb"),  # noqa: SIM115 – handed over
                env=clean_environment(self._home, self.device), pass_fds=(theirs.fileno(),),
                cwd=self._home, start_new_session=True,
            )  # fmt: skip
        self._control = ours
        ours.settimeout(START_SECONDS)
        answer = self._answer(Started)
        self.spent.cpu_seconds += answer.cpu_seconds
        self.root = answer.root
        self.loaded = {k: v for k, v in answer.loaded.items() if k not in _LOADED}

    def _tell(self, request: Fork | Reap, handles: list[int]) -> None:
        assert self._control is not None
        message = {"is": type(request).__name__, "message": to_data(request)}
        try:
            socket.send_fds(self._control, [json.dumps(message).encode()], handles)
        except OSError:
            raise WorkshopError(f"the workshop process ended: {self._said()}") from None

    def _answer(self, kind: type[A]) -> A:
        assert self._control is not None
        try:
            data = self._control.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            raise WorkshopError(f"the workshop process ended: {self._said()}")
        return from_data(kind, json.loads(data))

    def _said(self) -> str:
        assert self._home is not None
        return (self._home / "zygote.txt").read_text("utf-8", "replace")[-_OUTPUT_KEPT_BYTES:]

    def missing(self, name: str) -> str:
        """Why a package is not there; empty when it is."""
        self.start()
        said = self.loaded.get(name, "!not asked for")
        return said[1:] if said.startswith("!") else ""

    def scratch(self) -> Path:
        """A new folder that one session may write into."""
        self.start()
        assert self._home is not None
        self._sessions += 1
        folder = self._home / f"s{self._sessions}"
        folder.mkdir()
        if is_system_root():  # the process that writes here will be nobody
            os.chown(folder, NOBODY, NOBODY)
        return folder

    def open(
        self,
        role: str,
        *,
        scratch: Path | None = None,
        memory_bytes: int = 3 << 29,
        cpu_seconds: int = _SESSION_SECONDS,
        shared: Sequence[int] = (),
    ) -> Session:
        """Fork a child into a cell of its own; `role` names the module that serves there.

        `shared` are handles that it gets besides its channel.
        """
        limits = Limits(memory_bytes, cpu_seconds)
        return self._fork(scratch or self.scratch(), limits, _SERVERS[role], shared)

    def run_program(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        seconds: float,
        cpu_seconds: int,
        memory_bytes: int = 0,
        readable: Sequence[Path] = (),
        may_fork: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> Finished:
        """Run a program of the system in a cell of its own, until it ends or time is up.

        It writes into `folder` only; `readable` is all that it may read besides, and without it
        what a candidate may read.
        """
        limits = Limits(memory_bytes, cpu_seconds, file_bytes=_PROGRAM_FILE_BYTES)
        around = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": str(folder)}
        program = Program(
            list(command),
            around | dict(environment or {}),
            [str(path) for path in readable],
            may_fork,
        )
        session = self._fork(folder, limits, program)
        ended = session.end(late=not self.pause_for(session.pid, seconds))
        output = session.printed.read_bytes().decode("utf-8", "replace")
        return Finished("" if ended.reason == "ended" else ended.reason, output)

    def start_program(
        self, command: Sequence[str], folder: Path, *, shared: Sequence[int], memory_bytes: int
    ) -> Session:
        """A program that reads nothing but itself; it gets these handles, from number 3 on."""
        program = Program(list(command), {}, [command[0]], False)
        return self._fork(folder, Limits(memory_bytes, _SESSION_SECONDS), program, shared)

    def _fork(
        self, folder: Path, limits: Limits, work: str | Program, shared: Sequence[int] = ()
    ) -> Session:
        ours, theirs = socket.socketpair()
        assert self._control is not None
        printed = folder.with_name(folder.name + ".txt")
        request = Fork(str(folder), limits, self.device not in _HOST, work)
        with theirs, open(printed, "wb") as out:
            self._tell(request, [theirs.fileno(), out.fileno(), out.fileno(), *shared])
            pid = self._answer(Forked).pid
        return Session(pid, ours, self, printed)

    def pause_for(self, pid: int, seconds: float = 2.0) -> bool:
        """Give a process time to end by itself; whether it did."""
        until = time.monotonic() + seconds
        while not (ended := _is_zombie(pid)) and time.monotonic() < until:
            time.sleep(0.002)
        return ended

    def reap(self, pid: int) -> int:
        """The exit status of a child that was killed or has ended."""
        self._tell(Reap(pid), [])
        answer = self._answer(Reaped)
        self.spent.cpu_seconds += answer.cpu_seconds
        return answer.status

    def close(self) -> None:
        """End the process and remove its folder."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)

    def __enter__(self) -> Workshop:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return True


_HOST = ("", "cpu")
_ON_DEVICE = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_CACHE_DISABLE": "1"}
_ON_HOST = {"CUDA_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "1", "NUMBA_ENABLE_CUDASIM": "1"}


def clean_environment(home: Path, device: str = "") -> dict[str, str]:
    """Nothing of the user's environment: no keys, no settings, one thread; interpreters on.

    With a device they are off and the device is seen.
    """
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home),
        "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        "TRITON_CACHE_DIR": str(home), "NUMBA_NUM_THREADS": "2", "NUMBA_CACHE_DIR": str(home),
        "NUMBA_DISABLE_PERFORMANCE_WARNINGS": "1", **(_ON_HOST if device in _HOST else _ON_DEVICE),
    }  # fmt: skip


@contextlib.contextmanager
def workshop_for(preload: tuple[str, ...], given: Workshop | None) -> Iterator[Workshop]:
    """The workshop that was handed in, or a new one for as long as it is needed."""
    if given is not None:
        yield given
        return
    with Workshop(preload) as made:
        yield made
