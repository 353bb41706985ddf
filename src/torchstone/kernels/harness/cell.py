"""A cell: limits on time, memory, files, processes and the network, set by the process itself.

Everything here holds on Linux; what a system does not offer is named by `enter`, never passed over.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 1, 4, 38, 22
_RULESET, _RULE, _RESTRICT = 444, 445, 446
_O_PATH = getattr(os, "O_PATH", 0)
# Rights of Landlock, by the version of the interface that brought them.
_READ = 1 | 1 << 2 | 1 << 3
_WRITE = 1 << 1 | sum(1 << bit for bit in range(4, 13))
_NEWER = {2: 1 << 13, 3: 1 << 14}
_FILE_ONLY = 1 | 1 << 1 | 1 << 2 | 1 << 14


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process may use."""

    memory_bytes: int
    """Address space beyond what the process already has."""
    cpu_seconds: int
    file_bytes: int = 64 << 20
    open_files: int = 256


def enter(
    scratch: Path, limits: Limits, *, may_execute: bool = False, device: bool = False
) -> dict[str, str]:
    """Close the cell around this process; says for each wall what holds it.

    With `device` the files through which a driver is reached stay open.
    """
    os.setsid()
    os.chdir(scratch)
    _limit(limits)
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _LIBC.prctl(_PR_SET_DUMPABLE, 1 if may_execute or device else 0, 0, 0, 0)
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    files = _landlock(scratch, device_paths() if device else ())
    calls = _seccomp(may_execute)
    return {"files": files, "calls": calls}


def _limit(limits: Limits) -> None:
    def lower(kind: int, value: int) -> None:
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))

    if limits.memory_bytes:
        lower(resource.RLIMIT_AS, _address_space() + limits.memory_bytes)
    lower(resource.RLIMIT_CPU, limits.cpu_seconds)
    lower(resource.RLIMIT_FSIZE, limits.file_bytes)
    lower(resource.RLIMIT_NOFILE, limits.open_files)
    lower(resource.RLIMIT_CORE, 0)


def _address_space() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError):
        return 8 << 30
    return pages * os.sysconf("SC_PAGE_SIZE")


def device_paths() -> Iterable[Path]:
    """What the driver of a GPU is reached through; the network and other files stay closed."""
    yield from sorted(Path("/dev").glob("nvidia*"))
    for name in ("/dev/dxg", "/dev/dri", "/proc/driver/nvidia", "/proc/devices"):
        yield Path(name)


def _landlock(scratch: Path, written: Iterable[Path]) -> str:
    """Files: write only in the scratch folder and to `written`, read only what programs need."""
    if not sys.platform.startswith("linux"):
        return "none"
    version = _LIBC.syscall(_RULESET, None, 0, 1)
    if version < 1:
        return "none"
    newer = sum(bits for since, bits in _NEWER.items() if version >= since)
    handled = _READ | _WRITE | newer
    attributes = ctypes.create_string_buffer(struct.pack("<QQQ", handled, 0, 0))
    size = 8 if version < 4 else 24 if version >= 6 else 16
    ruleset = _LIBC.syscall(_RULESET, attributes, size, 0)
    if ruleset < 0:
        return "none"
    for path in readable_paths():
        _allow(ruleset, path, _READ)
    for name in ("/dev/null", "/dev/zero"):
        _allow(ruleset, Path(name), _READ | 1 << 1)
    for path in written:
        _allow(ruleset, path, _READ | 1 << 1)
    _allow(ruleset, scratch, handled)
    done = _LIBC.syscall(_RESTRICT, ruleset, 0)
    os.close(ruleset)
    return f"Landlock {version}" if done == 0 else "none"


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        handle = os.open(path, _O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not path.is_dir():
        rights &= _FILE_ONLY
    rule = ctypes.create_string_buffer(struct.pack("<Qi", rights, handle))
    _LIBC.syscall(_RULE, ruleset, 1, rule, 0)
    os.close(handle)


def readable_paths() -> Iterable[Path]:
    """System libraries, Python, installed packages; never this package and its problems."""
    ours = Path(__file__).resolve().parents[2]
    folders = ["/usr", "/lib", "/lib64", "/bin", "/sys", sys.base_prefix, sys.prefix, *sys.path]
    for name in dict.fromkeys(folders):
        if name and Path(name).is_dir():
            yield from _without(Path(name).resolve(), ours)
    for name in ("/etc/ld.so.cache", "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat",
                 "/proc/sys", "/dev/urandom"):  # fmt: skip
        yield Path(name)


def _without(folder: Path, kept: Path) -> Iterable[Path]:
    """A folder whole, or its parts around the one place that stays closed."""
    if not kept.is_relative_to(folder):
        yield folder
    elif folder != kept:
        for item in sorted(folder.iterdir()):
            yield from _without(item.resolve(), kept) if item.is_dir() else (item,)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """System calls of one machine."""

    audit: int
    clone: int
    execute: tuple[int, ...]
    refused: tuple[int, ...]
    signals: tuple[int, ...]
    prlimit: int


_MACHINES = {
    "x86_64": _Numbers(
        0xC000003E, 56, (59, 322),
        (41, 53, 57, 58, 101, 310, 311, 129, 434, 424, 438, 425, 321, 298, 165, 272, 308, 250,
         323, 90, 91, 268, 452, 92, 93, 94, 260, 280, 188, 189, 190, 197, 198, 199, 160),
        (62, 200, 234), 302,
    ),
    "aarch64": _Numbers(
        0xC00000B7, 220, (221, 281),
        (198, 199, 117, 270, 271, 138, 434, 424, 438, 425, 280, 241, 40, 97, 268, 219, 282, 52,
         53, 452, 55, 54, 88, 5, 6, 7, 14, 15, 16, 164),
        (129, 130, 131), 261,
    ),
}  # fmt: skip
_CLONE3, _CLONE_THREAD = 435, 0x10000
_LOAD, _EQUAL, _SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026


def _seccomp(may_execute: bool) -> str:
    """System calls: no sockets, no new processes, no signals to others, no looking into others."""
    numbers = _MACHINES.get(platform.machine())
    if numbers is None or not sys.platform.startswith("linux"):
        return "none"
    program = _program(numbers, may_execute)
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in program))
    filter_ = ctypes.create_string_buffer(
        struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(code))
    )
    done = _LIBC.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(filter_), 0, 0)
    return "seccomp" if done == 0 else "none"


def _program(numbers: _Numbers, may_execute: bool) -> list[tuple[int, int, int, int]]:
    """A filter as instructions: each test is followed by the answer that it guards."""

    def when(number: int, *body: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
        return [(_EQUAL, 0, len(body), number), *body]

    refuse = (_RETURN, 0, 0, _EPERM)
    lines = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, numbers.audit), refuse, (_LOAD, 0, 0, 0)]
    for number in (*numbers.refused, *(() if may_execute else numbers.execute)):
        lines += when(number, refuse)
    lines += when(_CLONE3, (_RETURN, 0, 0, _ENOSYS))
    lines += when(
        numbers.clone, (_LOAD, 0, 0, 16), (_SET, 1, 0, _CLONE_THREAD), refuse,
        (_RETURN, 0, 0, _ALLOW),
    )  # fmt: skip
    for number in numbers.signals:
        lines += when(
            number, (_LOAD, 0, 0, 16), (_EQUAL, 1, 0, os.getpid()), refuse, (_RETURN, 0, 0, _ALLOW)
        )
    # Limits may be read, not set: the third argument is the new limit.
    lines += when(
        numbers.prlimit, (_LOAD, 0, 0, 32), (_EQUAL, 1, 0, 0), refuse, (_RETURN, 0, 0, _ALLOW)
    )
    return [*lines, (_RETURN, 0, 0, _ALLOW)]
