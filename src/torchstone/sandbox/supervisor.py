"""Decides about calls that name an address, for a process that was put behind a filter.

Sockets that are files are connected here, by a copy of the process's own handle, and only below its
scratch folder; the address is read once, so that it cannot change after it was judged. All else
goes on in the process's own network namespace. What was out of reach is written down.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

_LIBC = ctypes.CDLL(None, use_errno=True)
_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_QUESTION, _ANSWER = struct.Struct("<QIIiIQ6Q"), struct.Struct("<QqiI")
_GO_ON = 1
_PIDFD_GETFD, _OPENAT2 = 438, 437
_BENEATH_WITHOUT_LINKS = 0x08 | 0x04
_MOST_ADDRESSES = 100
_MOST_BYTES = 128
"""Of an address: a path of 108 bytes is the longest."""
_LOOK_MILLISECONDS = 500
_LISTENING = "0A"


@dataclass(frozen=True, slots=True)
class Calls:
    """Numbers of the system calls that a filter asks about."""

    socket: int
    socketpair: int
    connect: int
    sendto: int
    sendmsg: int
    sendmmsg: int

    @classmethod
    def of(cls, machine: str) -> Calls:
        return {
            "x86_64": cls(41, 53, 42, 44, 46, 307),
            "aarch64": cls(198, 199, 203, 206, 211, 269),
        }[machine]


@dataclass(frozen=True, slots=True)
class _Question:
    id: int
    pid: int
    call: int
    arguments: tuple[int, ...]


def supervise(
    child: int, told: int, release: int, scratch: str, tell: Callable[[tuple[str, ...]], None]
) -> NoReturn:
    """Answer until the child has ended, then end as it did."""
    code = -signal.SIGKILL
    try:
        data = os.read(told, 4)
        if len(data) == 4:  # else it ended before it was behind the filter
            process = os.pidfd_open(child)
            listener = int(_LIBC.syscall(_PIDFD_GETFD, process, struct.unpack("i", data)[0], 0))
            if listener < 0:
                raise OSError(ctypes.get_errno(), "the process cannot be supervised")
            os.close(process)
            os.write(release, b"x")
            judge = _Judge(listener, scratch, Calls.of(os.uname().machine))
            code = _answer_until_end(judge, child)
            tell(tuple(judge.out_of_reach))
        else:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        raise
    finally:
        _end_as(code)
    raise AssertionError


def _end_as(code: int) -> None:
    if code < 0:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        signal.pause()
    os._exit(code)


def _answer_until_end(judge: _Judge, child: int) -> int:
    poll = select.poll()
    poll.register(judge.listener, select.POLLIN)
    ended = os.pidfd_open(child)
    poll.register(ended, select.POLLIN)
    while True:
        ready = dict(poll.poll(_LOOK_MILLISECONDS))
        if ready.get(judge.listener, 0) & select.POLLIN:
            judge.answer_one()
        elif ended in ready:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class _Judge:
    """Answers questions about one program."""

    def __init__(self, listener: int, scratch: str, calls: Calls) -> None:
        self.listener = listener
        self.out_of_reach: dict[str, None] = {}
        self._scratch = os.path.realpath(scratch)
        self._folder = os.open(self._scratch, os.O_PATH | os.O_DIRECTORY)
        self._calls = calls

    def answer_one(self) -> None:
        buffer = bytearray(_QUESTION.size)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, buffer)
        except OSError:  # the process ended while it asked
            return
        ident, pid, _, call, _, _, *arguments = _QUESTION.unpack(buffer)
        question = _Question(ident, pid, call, tuple(arguments))
        try:
            answer = self._answer(question)
        except OSError as error:
            answer = (error.errno or errno.EPERM, 0)
        number, flags = answer
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.listener, _SEND, _ANSWER.pack(ident, 0, -number, flags))

    def _answer(self, question: _Question) -> tuple[int, int]:
        """An error number, or to go on."""
        calls, given = self._calls, question.arguments
        if question.call in (calls.socket, calls.socketpair):
            self._note(_family_text(given[0], given[1]))
            return errno.EPERM, 0
        if question.call == calls.connect:
            return self._connect(question)
        place, size = given[4:6] if question.call == calls.sendto else (0, 0)
        if question.call in (calls.sendmsg, calls.sendmmsg):
            head = self._read(question, given[1], 12)
            place, size = struct.unpack("<QI", head) if len(head) == 12 else (0, 0)
        if place and size:
            self._note_internet(question, self._read(question, place, min(size, _MOST_BYTES)))
        return 0, _GO_ON

    def _connect(self, question: _Question) -> tuple[int, int]:
        handle, place, size = question.arguments[:3]
        address = self._read(question, place, min(size, _MOST_BYTES))
        process = os.pidfd_open(question.pid)
        try:
            copy = int(_LIBC.syscall(_PIDFD_GETFD, process, ctypes.c_int(handle).value, 0))
        finally:
            os.close(process)
        if copy < 0:
            return errno.EBADF, 0
        with socket.socket(fileno=copy) as theirs:
            if theirs.family != socket.AF_UNIX:
                self._note_internet(question, address)
                return 0, _GO_ON
            return self._connect_file(question, theirs, address), 0

    def _connect_file(self, question: _Question, theirs: socket.socket, address: bytes) -> int:
        name = address[2:]
        if not name or name[:1] == b"\0":
            self._note(f"unix:@{name[1:].decode('utf-8', 'replace')}")
            return errno.EPERM
        path = os.fsdecode(name.split(b"\0")[0])
        whole = os.path.normpath(os.path.join(os.readlink(f"/proc/{question.pid}/cwd"), path))
        below = os.path.relpath(whole, self._scratch)
        found = -1 if below.startswith("..") else self._open_below(below)
        if found < 0 and not os.path.lexists(whole):
            return errno.ENOENT  # the C library asks for services that few machines have
        if found < 0:
            self._note(f"unix:{path}")
            return errno.EPERM
        try:
            theirs.connect(f"/proc/self/fd/{found}")
        except OSError as error:
            return error.errno or errno.ECONNREFUSED
        finally:
            os.close(found)
        return 0

    def _open_below(self, path: str) -> int:
        """A handle of a file below the scratch folder; links are not followed."""
        how = ctypes.create_string_buffer(
            struct.pack("<QQQ", os.O_PATH | os.O_CLOEXEC, 0, _BENEATH_WITHOUT_LINKS)
        )
        return int(_LIBC.syscall(_OPENAT2, self._folder, os.fsencode(path), how, len(how) - 1))

    def _read(self, question: _Question, place: int, size: int) -> bytes:
        """Memory of the process that asks, which must still be the one that did."""
        with open(f"/proc/{question.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(place)
            data = memory.read(size)
        fcntl.ioctl(self.listener, _IS_VALID, struct.pack("<Q", question.id))
        return data

    def _note_internet(self, question: _Question, address: bytes) -> None:
        """Write down an address out of this network, or on loopback where nobody listens."""
        family = struct.unpack("<H", address[:2])[0] if len(address) >= 8 else 0
        port = struct.unpack(">H", address[2:4])[0] if family else 0
        if family == socket.AF_INET:
            host = socket.inet_ntop(socket.AF_INET, address[4:8])
        elif family == socket.AF_INET6 and len(address) >= 24:
            host = socket.inet_ntop(socket.AF_INET6, address[8:24])
        else:
            return
        is_here = host.startswith("127.") or host in ("::1", "0.0.0.0", "::")
        if not (is_here and _is_listening(question.pid, port)):
            self._note(f"{host}:{port}")

    def _note(self, text: str) -> None:
        if len(self.out_of_reach) < _MOST_ADDRESSES:
            self.out_of_reach[text] = None


def _is_listening(pid: int, port: int) -> bool:
    """Whether a socket of the process's network is bound to this port."""
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]:
                fields = line.split()
                is_open = kind.startswith("udp") or fields[3] == _LISTENING
                if is_open and int(fields[1].rpartition(":")[2], 16) == port:
                    return True
    return False


def _family_text(family: int, kind: int) -> str:
    if family == socket.AF_UNIX:
        return "unix: a datagram socket"
    return f"a socket of address family {family}, type {kind & 0xF}"
