"""The command that gives a process a network, shared memory and mounts of its own."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
from pathlib import Path

from torchstone.sandbox.cell import is_system_root

_OWN_PROCESSES = ("-p", "--fork", "--kill-child", "--mount-proc")
"""Processes see only their own kind, and all of them end with the first."""
_LIBC = ctypes.CDLL(None, use_errno=True)
_NETWORK, _MESSAGES, _MOUNTS, _PROCESSES, _USER = (
    0x40000000,
    0x08000000,
    0x20000,
    0x20000000,
    0x10000000,
)
_REC_PRIVATE = 0x4000 | 1 << 18
_NOSUID_NODEV_NOEXEC = 2 | 4 | 8


@functools.cache
def namespaces() -> tuple[str, ...]:
    """`unshare` with as much as the system allows; nothing where it allows nothing.

    Root of the machine needs no user namespace for it, and stays able to become nobody.
    """
    return _first_that_works(("-nim",) if is_system_root() else (), ("-rnim",), ("-rni",), ("-rn",))


@functools.cache
def process_namespaces() -> tuple[str, ...]:
    """The same with process numbers of its own; nothing unless all of it is allowed.

    It is the question; `enter_namespaces` does the same to this process.
    """
    return _first_that_works(
        ("-nim", *_OWN_PROCESSES) if is_system_root() else (), ("-rnim", *_OWN_PROCESSES)
    )


def _first_that_works(*choices: tuple[str, ...]) -> tuple[str, ...]:
    program = shutil.which("unshare")
    for flags in choices if program else ():
        if flags and not _exit_code([str(program), *flags, "true"]):
            return (str(program), *flags)
    return ()


def _exit_code(command: list[str]) -> int:
    return subprocess.run(command, capture_output=True, check=False).returncode


def enter_namespaces() -> None:
    """A network, messages and mounts of its own for this process, process numbers for its children."""
    flags = _NETWORK | _MESSAGES | _MOUNTS | _PROCESSES
    user, group = os.geteuid(), os.getegid()
    as_root = is_system_root()
    _check(_LIBC.unshare(flags if as_root else flags | _USER), "namespaces of its own")
    if not as_root:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _check(_LIBC.mount(b"none", b"/", None, _REC_PRIVATE, None), "mounts of its own")


def mount_processes() -> None:
    """What /proc shows, for the first process of its numbers."""
    _check(_LIBC.mount(b"proc", b"/proc", b"proc", _NOSUID_NODEV_NOEXEC, None), "its own /proc")


def _check(code: int, wanted: str) -> None:
    if code != 0:
        raise OSError(ctypes.get_errno(), f"the process could not be given {wanted}")
