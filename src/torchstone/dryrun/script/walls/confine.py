"""The kernel keeps the program from writing outside its scratch folder, and from TCP where it has no
network of its own.

Landlock (Linux 5.13 and newer) binds this process and all that it starts, whatever language they
are written in. Where it is missing, the Python layer (`overlay`, `guards`) stands alone.
"""

from __future__ import annotations

import ctypes
import os
import sys

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system call numbers, the same on all architectures
_PR_SET_NO_NEW_PRIVS = 38
_PATH_BENEATH = 1
_WRITES = (1 << 1) | sum(1 << bit for bit in range(4, 13))  # write, remove, make of every kind
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_WRITE_FILE = (1 << 1) | _TRUNCATE


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def confine(writable: str, allow_write: bool, refuse_tcp: bool) -> bool:
    """Bind this process and its children; False where the kernel cannot."""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, 0, 1)
    if version < 1:
        return False
    files = 0 if allow_write else _WRITES
    if version >= 2 and files:
        files |= _REFER
    if version >= 3 and files:
        files |= _TRUNCATE
    net = _CONNECT_TCP if version >= 4 and refuse_tcp else 0
    if not files and not net:
        return False
    rules = _Ruleset(files, net)
    size = 16 if version >= 4 else 8
    handle = libc.syscall(_CREATE, ctypes.byref(rules), size, 0)
    if handle < 0:
        return False
    try:
        if files:
            _allow(libc, handle, writable, files)
            for device in ("/dev/null", "/dev/tty", "/dev/zero", "/dev/full"):
                _allow(libc, handle, device, files & _WRITE_FILE)
            _allow(libc, handle, "/dev/shm", files)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return bool(libc.syscall(_RESTRICT, handle, 0) == 0)
    finally:
        os.close(handle)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, access: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rule = _Beneath(access, handle)
        libc.syscall(_ADD, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(handle)
