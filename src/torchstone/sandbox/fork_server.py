"""A process that loads libraries once and forks a process for each order.

The server reads orders from a socket and only imports what an order names; everything else happens in a fork. Between the server and the fork
stands a keeper: when the fork ends, when the caller says so or is gone, every process that the
fork has started ends with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import ClassVar, NoReturn

ANSWER = struct.Struct("<id")
"""Exit code, or minus the signal; CPU seconds of all processes."""
LONGEST_ORDER = 1 << 20
"""Bytes of an order: a message of a socket is not longer than the system's buffers."""
MOST_HANDLES = 8
_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Order:
    """A function to call in a process of its own."""

    main: str
    """`package.module:function`; it is given the words, and the numbers of the handles after them."""
    words: tuple[str, ...]
    environment: dict[str, str]
    folder: str
    preload: tuple[str, ...] = ()
    """Modules that the server loads first, for this order and all that follow."""


class State:
    """What this process knows of itself."""

    is_fork = False
    """It is a fork of a server: the libraries are loaded, and it can be a server itself."""
    at_end: ClassVar[list[Callable[[], None]]] = []
    """What a fork does before it leaves."""


def serve(control: socket.socket) -> NoReturn:
    """Until the caller is gone."""
    signal.signal(signal.SIGCHLD, _reap)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the caller's to answer
    while True:
        data, handles, _, _ = socket.recv_fds(control, LONGEST_ORDER, MOST_HANDLES)
        if not data:
            os._exit(0)
        fields = json.loads(data.decode("utf-8", "surrogateescape"))
        order = Order(**fields)
        for name in order.preload:
            # what cannot be imported here cannot be imported by the order either, which says so
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        gc.freeze()  # pages of what is loaded stay shared
        if os.fork() == 0:
            control.close()
            _keep(order, handles)
        for handle in handles:
            os.close(handle)


def _reap(_: int, __: FrameType | None) -> None:
    """Keepers that have ended: what they used is counted with the server's own time."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _keep(order: Order, handles: Sequence[int]) -> NoReturn:
    """Start the fork, wait for its end or the caller's, and end all that is left."""
    try:
        answer, *given = handles
        ended, awake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda _, __: None)
        signal.set_wakeup_fd(awake, warn_on_full_buffer=False)
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(answer)
            _become(order, given)
        for handle in given:
            os.close(handle)
        code = _wait(child, answer, ended)
        _end_children()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(answer, ANSWER.pack(code, used.ru_utime + used.ru_stime))
    except BrokenPipeError:
        pass  # the caller is gone
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _wait(child: int, answer: int, ended: int) -> int:
    """The exit code. A sandbox around us may refuse handles of processes: signals tell of ends."""
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(answer, select.POLLIN)  # closed by the caller, or with it
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        ready = dict(poll.poll())
        if ended in ready:
            os.read(ended, 4096)
        if answer in ready:
            poll.unregister(answer)
            os.kill(child, signal.SIGKILL)


def _end_children() -> None:
    """What the fork left behind belongs to the keeper now, and so does what that leaves."""
    own = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        with contextlib.suppress(OSError):
            for word in own.read_text().split():
                os.kill(int(word), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _become(order: Order, handles: Sequence[int]) -> NoReturn:
    State.is_fork = True
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    source, out, *rest = handles
    os.dup2(source, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    close_all_but(rest)
    take_environment(order.environment)
    os.chdir(order.folder)
    call_and_leave(order.main, [*order.words, *map(str, rest)])


def close_all_but(handles: Sequence[int]) -> None:
    """The standard streams and these stay open."""
    kept = sorted((2, *handles))
    for below, above in zip(kept, (*kept[1:], os.sysconf("SC_OPEN_MAX")), strict=True):
        os.closerange(below + 1, above)


def take_environment(environment: dict[str, str]) -> None:
    """As a fresh interpreter has it: variables, search path, folder of temporary files."""
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ.clear()
    os.environ.update(environment)
    searched = [word for word in environment.get("PYTHONPATH", "").split(os.pathsep) if word]
    sys.path[:] = [*searched, *(word for word in sys.path if word not in before)]
    tempfile.tempdir = None


def call_and_leave(main: str, words: list[str]) -> NoReturn:
    """Call a function and end the process as the interpreter would, without its farewell."""
    code = 1
    try:
        module, _, name = main.partition(":")
        sys.argv = [module, *words]
        getattr(importlib.import_module(module), name)(words)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    for work in State.at_end:
        work()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


def execute(words: list[str]) -> NoReturn:
    """An order that is a program."""
    for word in sorted(os.listdir("/proc/self/fd"), key=int):  # handles are the program's, too
        with contextlib.suppress(OSError):
            os.set_inheritable(int(word), True)
    os.execve(words[0], words, dict(os.environ))


def main(control: int) -> NoReturn:
    serve(socket.socket(fileno=control))
