"""A process that has loaded what takes long to load, and forks a clean child for each session.

It holds no problem, no candidate and no result. The parent hands over a socket for each child and
talks to the child through it; a dead child stays a zombie until the parent asks for its end, so
that a process number is never used twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import shutil
import signal
import socket
import time
from pathlib import Path

from torchstone.core.codec import from_data, prepare_classes, to_data
from torchstone.kernels.messages.to_zygote import Fork, Forked, Program, Reap, Reaped, Started
from torchstone.sandbox import cell
from torchstone.sandbox.small_root import enter_small_root

FOLDER = "torchstone-kernel-"
"""How the name of the folder begins in which this process is started, and which it removes."""
_MESSAGE_BYTES = 1 << 16
_MOST_HANDLES = 8
_ABOVE = 64
"""No handle that is handed on has so high a number."""
_DRIVER = "torchstone.kernels.harness.kits.triton_device"


def main(control_handle: int, device: str, preload: list[str]) -> None:
    """Load, say what is loaded, then serve until the control socket closes."""
    control = socket.socket(fileno=control_handle)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt ends
    gc.disable()  # what is loaded stays: looking through it for garbage would cost a tenth more
    loaded = _load(preload)
    if device not in ("", "cpu") and "triton" in preload:
        said = importlib.import_module(_DRIVER).load_driver()
        loaded["driver"] = f"!{said}" if said else ""
    outside = os.open(Path.cwd().parent, os.O_RDONLY)
    root = enter_small_root(Path.cwd(), _packages(preload)) if device in ("", "cpu") else "none"
    gc.freeze()  # so that children neither look through it nor copy its memory
    gc.enable()
    seconds = time.process_time()
    children: set[int] = set()
    try:
        _tell(control, Started(loaded, seconds, root))
        _serve(control, children, outside)
    finally:  # the parent has ended, perhaps before it heard the last answer
        _clear_up(children, outside)


def _serve(control: socket.socket, children: set[int], outside: int) -> None:
    """Fork and reap as asked; `children` are those that nobody has reaped."""
    while True:
        data, handles, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, _MOST_HANDLES)
        if not data:
            return
        message = json.loads(data)
        if message["is"] == Fork.__name__:
            pid = _fork(from_data(Fork, message["message"]), handles, control, outside)
            children.add(pid)
            _tell(control, Forked(pid))
        else:
            pid = from_data(Reap, message["message"]).pid
            children.discard(pid)
            _, status, used = os.wait4(pid, 0)
            _tell(control, Reaped(status, used.ru_utime + used.ru_stime))
        for handle in handles:
            os.close(handle)


def _tell(control: socket.socket, message: Started | Forked | Reaped) -> None:
    control.sendall(json.dumps(to_data(message)).encode())


def _clear_up(children: set[int], outside: int) -> None:
    """Nobody is left who would: the parent has ended, or was killed in the middle.

    `outside` is the folder that holds this process's own, which is a mount where it is seen from here.
    """
    for pid in children:
        for end in (os.killpg, os.kill):  # it may not have got a group of its own yet
            with contextlib.suppress(OSError):
                end(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(pid, 0)
    home = Path.cwd()
    if home.name.startswith(FOLDER):
        shutil.rmtree(home, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(home.name, dir_fd=outside)


def _packages(names: list[str]) -> list[str]:
    """Installed packages among what is loaded: modules of our own are none."""
    return [name for name in names if "." not in name]


def _load(names: list[str]) -> dict[str, str]:
    """Import what the sessions will need; a missing package is an answer, not an end."""
    loaded: dict[str, str] = {}
    for name in names:
        try:
            module = importlib.import_module(name)
        except Exception as error:  # a broken installation is told like a missing one
            loaded[name] = f"!{type(error).__name__}: {error}"[:300]
            continue
        prepare_classes(getattr(module, "ANSWERS", ()))  # once for all children
        loaded[name] = str(getattr(module, "__version__", ""))
    return loaded


def _hand_on(handles: list[int]) -> None:
    """Put handles where a program expects them: behind its input and its outputs, in their order."""
    above = [fcntl.fcntl(handle, fcntl.F_DUPFD, _ABOVE) for handle in handles]
    for target, handle in enumerate(above, 3):
        os.dup2(handle, target)
        os.close(handle)


def _fork(request: Fork, handles: list[int], control: socket.socket, outside: int) -> int:
    channel, out, err, *shared = handles
    pid = os.fork()
    if pid:
        return pid
    try:
        control.close()
        os.close(outside)  # no way out of the root folder
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        limits, work = request.limits, request.work
        if isinstance(work, Program):
            program = cell.Program(tuple(map(Path, work.readable)), work.may_fork)
            cell.enter(Path(request.scratch), limits, program=program)
            os.set_inheritable(channel, False)
            _hand_on(shared)
            os.execve(work.command[0], work.command, work.environment)
        walls = cell.enter(Path(request.scratch), limits, device=request.device)
        server = importlib.import_module(work)
        server.serve(socket.socket(fileno=channel), walls, tuple(shared))
        code = 0
    except BaseException as error:  # the child must never return into the server's loop
        os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        code = 70
    os._exit(code)
