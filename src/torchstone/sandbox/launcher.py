"""Closes the sandbox around a command and starts it; an order of `fork_server` calls `main`.

The first process of the namespaces waits here: what it starts ends with it. Nothing of the
caller's environment reaches the command.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from torchstone.sandbox.cell import Limits, Program, enter, readable_paths
from torchstone.sandbox.fork_server import call_and_leave, take_environment
from torchstone.sandbox.namespaces import enter_namespaces, mount_processes
from torchstone.sandbox.network import MARK, own_namespace, switch_loopback_on

_LIBC = ctypes.CDLL(None, use_errno=True)
_MS_REC, _MS_PRIVATE, _MS_BIND, _MS_NOSUID, _MS_NODEV = 0x4000, 1 << 18, 4096, 2, 4
_MOUNT_SETATTR, _AT_RECURSIVE, _RDONLY = 442, 0x8000, 1
SHARED = ("/tmp", "/var/tmp", "/run", "/dev/shm")
"""Folders that programs write to by habit: empty ones of its own."""
_SYSTEM = frozenset(
    ("usr", "lib", "lib32", "lib64", "libx32", "bin", "sbin", "etc", "proc", "sys", "dev")
)
"""All other folders of the root are hidden: sockets of the user's programs lie there, and no wall
but this one stops a connection to them."""
_SETTINGS = ("/etc/hosts", "/etc/localtime", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf")
_PROCESSES = 4096
"""Threads of all its processes together: a loader with workers takes hundreds, a fork bomb all."""
NOT_STARTED = 70
"""Exit code of a command that could not be started."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to run, and what it may use."""

    command: tuple[str, ...]
    """A program and its words; or `package.module:function` and its words where `is_call`."""
    is_call: bool
    folder: str
    """The one place that it may write to; it starts in `start`, below it."""
    start: str
    readable: tuple[str, ...]
    environment: dict[str, str]
    seconds: float
    memory_bytes: int
    own_namespaces: bool


def main(words: list[str]) -> None:
    order = Order(**json.loads(words[0]))
    if order.own_namespaces:
        enter_namespaces()
        first = os.fork()
        if first:  # only children are in the new process numbers
            os._exit(_wait_for(first))
        mount_processes()
        switch_loopback_on()
        _hide(order)
    child = os.fork()
    if not child:
        _become(order)
    os._exit(_wait_for(child))


def _wait_for(child: int) -> int:
    """The exit code of the command; whatever else ends meanwhile is reaped."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code  # as shells say it: 128 and the signal


def _become(order: Order) -> None:
    try:
        limits = Limits(
            order.memory_bytes, cpu_seconds=int(order.seconds * (os.cpu_count() or 1)) + 1,
            file_bytes=2 << 30, open_files=4096, processes=_PROCESSES,
        )  # fmt: skip
        here = [Path(name) for name in (*order.readable, *_SETTINGS)]
        own = order.own_namespaces
        # numbers of processes are its own there, and so is what /proc tells
        here += [Path("/proc")] if own else []
        program = Program(
            (*readable_paths(with_ours=True), *here), may_fork=True, own_namespaces=own,
            writable=tuple(map(Path, SHARED)) if own else (),
        )  # fmt: skip
        enter(Path(order.folder), limits, program=program)
        os.chdir(order.start)
        environment = order.environment | ({MARK: own_namespace()} if own else {})
        if order.is_call:
            take_environment(environment)
            call_and_leave(order.command[0], list(order.command[1:]))
        os.execve(order.command[0], list(order.command), environment)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
    os._exit(NOT_STARTED)


def _hide(order: Order) -> None:
    """Everything is read-only but the folder; empty folders lie over the shared ones, and what the
    command needs of them is put back."""
    _LIBC.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
    needed = [order.folder, *order.readable, sys.prefix, sys.base_prefix, *sys.path]
    kept = {
        path: os.open(path, os.O_PATH)
        for path in sorted(set(map(os.path.realpath, filter(None, needed))), key=len)
        if path == os.path.realpath(order.folder) or (_is_hidden(path) and os.path.isdir(path))
    }
    _set_read_only("/", _AT_RECURSIVE)
    for folder in (*_hidden(), "/dev/shm"):
        mode = b"mode=1777,size=1g" if folder in SHARED else b"mode=755,size=1m"
        _mount(b"tmpfs", folder, b"tmpfs", _MS_NOSUID | _MS_NODEV, mode)
    os.makedirs("/var/tmp", exist_ok=True)
    os.chmod("/var/tmp", 0o1777)
    done: list[str] = []
    for path, handle in kept.items():
        if not any(path.startswith(f"{above}/") for above in done) or path == order.folder:
            os.makedirs(path, exist_ok=True)
            _mount(f"/proc/self/fd/{handle}".encode(), path, None, _MS_BIND | _MS_REC, None)
            done.append(path)
        os.close(handle)
    _set_read_only(os.path.realpath(order.folder), 0, clear=True)


def _hidden() -> list[str]:
    """Folders of the root that are not the system's."""
    with os.scandir("/") as entries:
        return sorted(
            item.path for item in entries
            if item.name not in _SYSTEM and item.is_dir(follow_symlinks=False)
        )  # fmt: skip


def _is_hidden(path: str) -> bool:
    return path.startswith(tuple(f"{folder}/" for folder in (*_hidden(), "/dev/shm")))


def _set_read_only(path: str, flags: int, clear: bool = False) -> None:
    """`mount_setattr`, Linux 5.12 and newer: modes and times of files are not Landlock's business."""
    wanted = (0, _RDONLY) if clear else (_RDONLY, 0)
    attributes = ctypes.create_string_buffer(struct.pack("<QQQQ", *wanted, 0, 0))
    done = _LIBC.syscall(_MOUNT_SETATTR, -100, os.fsencode(path), flags, attributes, 32)
    if done != 0:
        raise OSError(ctypes.get_errno(), f"{path} could not be made read-only")


def _mount(source: bytes, target: str, kind: bytes | None, flags: int, data: bytes | None) -> None:
    if os.path.isdir(target) and _LIBC.mount(source, os.fsencode(target), kind, flags, data) != 0:
        raise OSError(ctypes.get_errno(), f"{target} could not be mounted")
