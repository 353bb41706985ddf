"""What a program may not do in a dry run, and what it is told instead."""

from __future__ import annotations

import builtins
import errno
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from torchstone.core.text import Text
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.script.session import Session

_NO_ALARM = Text("the alarm never comes", "闹钟信号不会到来")
NO_NETWORK = "no network in a dry run"
"""Is looked for in what a program raises: libraries put the text of an error into one of their own."""


def guard(session: Session) -> None:
    """No questions to a terminal, no network, no signals to others; processes are written down."""
    _refuse_input()
    _refuse_network(session)
    _note_processes(session)
    _keep_signals(session)
    if not session.settings.play_ranks:
        _refuse_ranks()


def _refuse_input() -> None:
    def ask(prompt: object = "") -> NoReturn:
        error = EOFError(f"input({str(prompt)!r}): a dry run has nobody to ask")
        error._dryrun_cause = "input"  # type: ignore[attr-defined]
        raise error

    builtins.input = ask


def _refuse_ranks() -> None:
    """Processes that a script starts with torch would run for real, without any of the answers."""
    import torch.multiprocessing as processes

    def spawn(fn: object, args: object = (), nprocs: int = 1, *a: object, **k: object) -> NoReturn:
        error = RuntimeError(f"torch.multiprocessing.spawn with nprocs={nprocs}")
        error._dryrun_cause = "ranks"  # type: ignore[attr-defined]
        raise error

    put(processes, "spawn", spawn)
    put(processes, "start_processes", spawn)


def _refuse_network(session: Session) -> None:
    def refused(address: object) -> OSError:
        error = ConnectionError(f"{NO_NETWORK} (asked for {address})")
        error._dryrun_cause = "network"  # type: ignore[attr-defined]
        session.addresses[_written_out(address)] = None
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


def _written_out(address: object) -> str:
    """`example.com:443`."""
    return ":".join(map(str, address)) if isinstance(address, tuple) else str(address)


def _note_processes(session: Session) -> None:
    def on_event(event: str, args: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            words = args[1] if isinstance(args[1], str) else " ".join(map(str, args[1]))
            session.processes[words[:120]] = None
        elif event in ("os.system", "os.exec", "os.posix_spawn", "os.spawn"):
            session.processes[os.fsdecode(args[0])[:120]] = None

    sys.addaudithook(on_event)
    real_fork = os.fork

    def fork() -> int:
        session.processes["os.fork()"] = None
        child = real_fork()
        session.is_copy = session.is_copy or child == 0
        return child

    os.fork = fork


def _keep_signals(session: Session) -> None:
    """The alarm is ours; processes that the program has not started are not signalled."""
    real_signal, real_kill = signal.signal, os.kill

    def set_handler(number: Any, handler: Any) -> Any:
        if number != signal.SIGALRM:
            return real_signal(number, handler)
        session.assume("signal.signal(SIGALRM)", _NO_ALARM)
        return signal.SIG_DFL

    def set_alarm(*_: Any) -> Any:
        session.assume("signal.alarm", _NO_ALARM)
        return 0

    def kill(process: int, number: int) -> None:
        if number and not _is_ours(process):
            error = PermissionError(errno.EPERM, f"no signals to process {process} in a dry run")
            error._dryrun_cause = "signal"  # type: ignore[attr-defined]
            raise error
        real_kill(process, number)

    for home, name, value in (
        (signal, "signal", set_handler), (signal, "alarm", set_alarm),
        (os, "kill", kill), (os, "killpg", kill),
    ):  # fmt: skip
        put(home, name, value)


def _is_ours(process: int) -> bool:
    """This process, or one that it has started."""
    own = os.getpid()
    while process > 1 and process != own:
        try:
            fields = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2]
        except FileNotFoundError:
            return True  # the real call says that it does not exist
        process = int(fields.split()[1])
    return process == own
