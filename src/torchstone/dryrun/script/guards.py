"""What a program may not do in a dry run, and what it is told instead."""

from __future__ import annotations

import builtins
import os
import socket
import sys
from typing import Any, NoReturn

from torchstone.dryrun.script.session import Session


def guard(session: Session) -> None:
    """No questions to a terminal, no network; other processes are written down."""
    _refuse_input()
    _refuse_network(session)
    _note_processes(session)


def _refuse_input() -> None:
    def ask(prompt: object = "") -> NoReturn:
        error = EOFError(f"input({str(prompt)!r}): a dry run has nobody to ask")
        error._dryrun_cause = "input"  # type: ignore[attr-defined]
        raise error

    builtins.input = ask


def _refuse_network(session: Session) -> None:
    def refused(address: object) -> OSError:
        error = ConnectionError(f"no network in a dry run (asked for {address})")
        error._dryrun_cause = "network"  # type: ignore[attr-defined]
        session.note(f"network: {address}")
        return error

    class Socket(socket.socket):
        def connect(self, address: Any) -> None:
            if self.family == socket.AF_UNIX:
                super().connect(address)
                return
            raise refused(address)

        def connect_ex(self, address: Any) -> int:
            if self.family == socket.AF_UNIX:
                return super().connect_ex(address)
            raise refused(address)

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise refused(host)

    socket.socket = Socket  # type: ignore[misc]
    socket.getaddrinfo = getaddrinfo
    socket.gethostbyname = getaddrinfo
    socket.create_connection = lambda address, *a, **k: getaddrinfo(address)


def _note_processes(session: Session) -> None:
    def on_event(event: str, args: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            words = args[1] if isinstance(args[1], str) else " ".join(map(str, args[1]))
            session.note(f"process: {words[:120]}")
        elif event in ("os.system", "os.exec", "os.posix_spawn", "os.spawn"):
            session.note(f"process: {str(args[0])[:120]}")

    sys.addaudithook(on_event)
    real_fork = os.fork

    def fork() -> int:
        session.note("process: os.fork()")
        return real_fork()

    os.fork = fork
