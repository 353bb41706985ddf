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
from torchstone.dryrun.session import Session

_NO_ALARM = Text("the alarm never comes", "闹钟信号不会到来")
NO_NETWORK = "no network in a dry run"
"""Is looked for in what a program raises: libraries put the text of an error into one of their own."""


def guard(session: Session) -> None:
    """No questions to a terminal, no network, no signals to others; processes are written down."""
    _refuse_input()
    _refuse_network(session)
    _note_processes(session)
    _keep_signals(session)


def _refuse_input() -> None:
    def ask(prompt: object = "") -> NoReturn:
        error = EOFError(f"input({str(prompt)!r}): a dry run has nobody to ask")
        error._dryrun_cause = "input"  # type: ignore[attr-defined]
        raise error

    builtins.input = ask


def _refuse_network(session: Session) -> None:
    """Names and addresses of this machine are answered, all others refused and written down."""

    def refused(address: object) -> OSError:
        session.addresses[_written_out(address)] = None
        return _mark_network(ConnectionError(f"{NO_NETWORK} (asked for {address})"))

    class Socket(socket.socket):
        def connect(self, address: Any) -> None:
            if _is_far(self, address):
                raise refused(address)
            try:
                super().connect(address)
            except OSError as error:
                session.addresses[_written_out(address)] = None
                _mark_network(error)  # no such service here, or a socket of another program
                raise

        def connect_ex(self, address: Any) -> int:
            if _is_far(self, address):
                raise refused(address)
            return super().connect_ex(address)

        def sendto(self, data: Any, *rest: Any) -> int:
            if rest and _is_far(self, rest[-1]):
                raise refused(rest[-1])
            return super().sendto(data, *rest)

        def sendmsg(self, buffers: Any, *rest: Any) -> int:
            if len(rest) > 2 and _is_far(self, rest[2]):
                raise refused(rest[2])
            return super().sendmsg(buffers, *rest)

    real_look_up, real_by_name = socket.getaddrinfo, socket.gethostbyname
    real_create = socket.create_connection

    def look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_here(host):
            raise refused(host)
        try:
            return real_look_up(host, *args, **kwargs)
        except OSError:  # the name of a machine that no table of it knows
            return real_look_up("127.0.0.1", *args, **kwargs)

    def find_by_name(host: Any) -> str:
        if not _is_here(host):
            raise refused(host)
        try:
            return real_by_name(host)
        except OSError:
            return "127.0.0.1"

    def create_connection(address: Any, *args: Any, **kwargs: Any) -> socket.socket:
        if not _is_here(address[0]):
            raise refused(address)
        return real_create(address, *args, **kwargs)

    socket.socket = Socket  # type: ignore[misc]
    socket.getaddrinfo = look_up
    socket.gethostbyname = find_by_name
    socket.create_connection = create_connection


def _mark_network(error: OSError) -> OSError:
    error._dryrun_cause = "network"  # type: ignore[attr-defined]
    return error


def _is_far(own: socket.socket, address: object) -> bool:
    """Whether an address leads out of this machine; sockets that are files are judged elsewhere."""
    is_internet = own.family in (socket.AF_INET, socket.AF_INET6)
    return is_internet and isinstance(address, tuple) and not _is_here(address[0])


def _is_here(host: object) -> bool:
    """Whether a name or a number means this machine."""
    name = os.fsdecode(host) if isinstance(host, (str, bytes)) else ""
    own = socket.gethostname()
    return (
        name.startswith("127.")
        or name
        in ("", "localhost", "::1", "0.0.0.0", "::", "ip6-localhost", "localhost.localdomain")
        or name in (own, own.partition(".")[0])
    )


def _written_out(address: object) -> str:
    """`example.com:443`, or `unix:/path`, with an @ before an abstract name."""
    if isinstance(address, tuple):
        return ":".join(map(str, address[:2]))
    text = os.fsdecode(address) if isinstance(address, (str, bytes)) else str(address)
    if text.startswith("\0"):
        return f"unix:@{text[1:]}"
    return f"unix:{text}" if "/" in text else text


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
        if child == 0:
            session.become_copy()
        return child

    os.fork = fork


def _keep_signals(session: Session) -> None:
    """The alarm is ours; processes that the program has not started are not signalled."""
    real_signal, real_kill = signal.signal, os.kill

    def set_handler(number: Any, handler: Any) -> Any:
        if number not in (signal.SIGALRM, signal.SIGPROF):
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
