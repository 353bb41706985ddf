"""Processes that start with their libraries loaded: the caller's side of `fork_server`."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from torchstone.sandbox import fork_server
from torchstone.sandbox.fork_server import ANSWER, Order

PACKAGE_HOME = Path(__file__).resolve().parents[2]
_START = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from torchstone.sandbox.fork_server import main; main(int(sys.argv[2]))"
)
EXECUTE = "torchstone.sandbox.fork_server:execute"
"""The order to run a program: its words, with the numbers of the handles after them."""
NOT_STARTED = 70
"""Exit code of an order that no process was made for."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, and what it and all that it started have used."""

    code: int
    cpu_seconds: float


class Running:
    """A process that is running."""

    def __init__(self, answer: socket.socket) -> None:
        self._answer = answer
        self._ended: Ended | None = None
        self._lock = threading.Lock()

    def wait(self, seconds: float) -> Ended | None:
        """How it ended; None where it has not within this time."""
        if self._ended is None and select.select([self._answer], [], [], max(0.0, seconds))[0]:
            self._take()
        return self._ended

    def end(self) -> Ended:
        """Stop it and everything that it started."""
        if self._ended is None:
            with contextlib.suppress(OSError):
                self._answer.shutdown(socket.SHUT_WR)
            self._take()
        assert self._ended is not None
        return self._ended

    def _take(self) -> None:
        with self._lock:
            if self._ended is None:
                data = self._answer.recv(ANSWER.size)
                whole = len(data) == ANSWER.size
                self._ended = Ended(*ANSWER.unpack(data)) if whole else Ended(NOT_STARTED, 0.0)
                self._answer.close()


def start(
    order: Order, base: Mapping[str, str], source: int, out: int, handles: Sequence[int] = ()
) -> Running:
    """Start a process for an order. `base` is the environment in which its libraries were loaded;
    it reads from `source`, prints to `out`, and has the handles."""
    with _LOCK:
        for _ in range(2):  # a server that was killed is replaced once
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            given = (theirs.fileno(), source, out, *handles)
            text = json.dumps(asdict(order)).encode("utf-8", "surrogateescape")
            try:
                socket.send_fds(_server_for(base), [text], given)
                return Running(ours)
            except (BrokenPipeError, ConnectionResetError):
                _forget_server(base)
                ours.close()
            finally:
                theirs.close()
    raise OSError("no process could be started: its server ends at once")


_LOCK = threading.Lock()
_SERVERS: dict[tuple[int, frozenset[tuple[str, str]]], _Server] = {}


@dataclass(frozen=True, slots=True)
class _Server:
    control: socket.socket
    process: subprocess.Popen[bytes] | None
    fork: int = 0
    """The process, where it is a fork of this one."""

    def close(self) -> None:
        self.control.close()
        if self.fork:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.fork, 0)  # what it used is counted with this process
        if self.process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5.0)
            self.process.kill()


def _key(base: Mapping[str, str]) -> tuple[int, frozenset[tuple[str, str]]]:
    """A fork of this process has servers of its own."""
    return os.getpid(), frozenset(base.items())


def _server_for(base: Mapping[str, str]) -> socket.socket:
    key = _key(base)
    if key not in _SERVERS:
        _SERVERS[key] = _fork_server() if fork_server.State.is_fork else _start_server(base)
    return _SERVERS[key].control


def _forget_server(base: Mapping[str, str]) -> None:
    _SERVERS.pop(_key(base)).close()


def _start_server(base: Mapping[str, str]) -> _Server:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, str(PACKAGE_HOME), str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env=dict(base),
            start_new_session=True,
        )
    return _Server(ours, process)


def _fork_server() -> _Server:
    """This process has loaded nothing but libraries: a copy of it can serve."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fork = os.fork()
    if fork == 0:
        _serve(theirs)
    theirs.close()
    if _close_servers not in fork_server.State.at_end:
        fork_server.State.at_end.append(_close_servers)
    return _Server(ours, None, fork)


def _serve(control: socket.socket) -> NoReturn:
    try:
        # a pipe that it held open would never end
        fork_server.close_all_but([control.fileno()])
        fork_server.serve(control)
    finally:
        os._exit(NOT_STARTED)


def _close_servers() -> None:
    for (pid, _), server in _SERVERS.items():
        if pid == os.getpid():
            server.close()


atexit.register(_close_servers)
