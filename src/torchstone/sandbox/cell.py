"""A cell: limits on time, memory, files, processes and the network, set by the process itself.

Everything here holds on Linux; what a system does not offer is named by `enter`, never passed over.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from torchstone.sandbox.seccomp import (
    ALLOW,
    MISSING,
    REFUSE,
    Instruction,
    argument,
    if_equal,
    if_set,
    install_filter,
    preamble,
    supported_machine,
    unless_equal,
    unless_set,
    when_call,
)

_LIBC = ctypes.CDLL(None, use_errno=True)
NOBODY = 65534
_PR_SET_KEEPCAPS = 8
_CAP_DAC_READ_SEARCH = 2
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_CLONE_NEWNS, _MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 0x20000, 2, 4, 0x4000, 1 << 18
TEMPORARY = "tmp"
"""Folder inside a scratch folder that a candidate may write into, where it has a size."""
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
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
    processes: int = 0
    """Of the user, threads included; 0: no limit of its own."""
    disk_bytes: int = 256 << 20
    """All files together, where the system can hold a process to it."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a cell allows to a program of the system that runs in it, as a compiler does."""

    readable: tuple[Path, ...]
    """All that it may read besides its scratch folder; empty: what candidates may read."""
    may_fork: bool = False
    own_namespaces: bool = False
    """Network and process numbers are its own: sockets and signals reach nobody else."""
    writable: tuple[Path, ...] = ()
    """Folders that it may write besides its scratch folder."""


def enter(
    scratch: Path, limits: Limits, *, program: Program | None = None, device: bool = False
) -> dict[str, str]:
    """Close the cell around this process; says for each wall what holds it.

    Without a `program` no other program can be started, and only a folder of limited size can be
    written to. With `device` the files through which a driver is reached stay open.
    """
    os.setsid()
    disk = "" if program else _mount_temporary(scratch / TEMPORARY, limits.disk_bytes)
    own = scratch / TEMPORARY if disk else scratch
    os.chdir(own)
    user = _drop_user(keep_reading=program is not None and program.own_namespaces)
    _limit(limits)
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _LIBC.prctl(_PR_SET_DUMPABLE, 1 if program or device else 0, 0, 0, 0)
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    readable = program.readable if program and program.readable else tuple(readable_paths())
    writable = (own, *(program.writable if program else ()))
    files = _landlock((*readable, scratch), writable, device_paths() if device else ())
    calls = _seccomp(program)
    return {"files": files, "calls": calls, "user": user, "disk": disk or "none"}


def available() -> dict[str, str]:
    """Walls that this system can hold, by the same names; nothing is closed."""
    linux = sys.platform.startswith("linux")
    version = _LIBC.syscall(_RULESET, None, 0, 1) if linux else 0
    calls = bool(supported_machine()) and Path("/proc/sys/kernel/seccomp").is_dir()
    return {
        "files": f"Landlock {version}" if version >= 1 else "none",
        "calls": "seccomp" if calls else "none",
    }


def _mount_temporary(folder: Path, size_bytes: int) -> str:
    """A folder in memory with a size of its own, seen by this process alone."""
    if not sys.platform.startswith("linux") or _LIBC.unshare(_CLONE_NEWNS) != 0:
        return ""
    _LIBC.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
    folder.mkdir(exist_ok=True)
    settings = f"size={size_bytes},nr_inodes=4096,mode=0777".encode()
    done = _LIBC.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", _MS_NOSUID | _MS_NODEV, settings)
    return "tmpfs of limited size" if done == 0 else ""


def is_system_root() -> bool:
    """Whether this process is root of the machine, and not only of a namespace of its own."""
    try:
        mapped = Path("/proc/self/uid_map").read_text().split()
    except OSError:
        return False
    return os.geteuid() == 0 and mapped == ["0", "0", str(2**32 - 1)]


def _drop_user(keep_reading: bool) -> str:
    """Root becomes nobody; only the right to read what Landlock leaves open stays.

    Python and its packages may lie in a folder that only root can enter. With `keep_reading`
    programs that are started later keep that right, too.
    """
    if os.geteuid() != 0:
        return "not root"
    if not is_system_root():
        return "own user namespace"
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    _LIBC.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    right = 1 << _CAP_DAC_READ_SEARCH
    header = ctypes.create_string_buffer(struct.pack("<Ii", 0x20080522, 0))
    data = ctypes.create_string_buffer(
        struct.pack("<6I", right, right, right if keep_reading else 0, 0, 0, 0)
    )
    if _LIBC.capset(header, data) != 0:
        raise OSError(ctypes.get_errno(), "the rights of root could not be given up")
    if keep_reading:
        _LIBC.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_READ_SEARCH, 0, 0)
    return "nobody"


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
    if limits.processes:
        lower(resource.RLIMIT_NPROC, limits.processes)
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


def _landlock(readable: Iterable[Path], writable: Iterable[Path], devices: Iterable[Path]) -> str:
    """Files: written in a folder of its own and to devices only, read there and below `readable`."""
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
    for path in readable:
        _allow(ruleset, path, _READ)
    for name in ("/dev/null", "/dev/zero"):
        _allow(ruleset, Path(name), _READ | 1 << 1)
    for path in devices:
        _allow(ruleset, path, _READ | 1 << 1)
    for path in writable:
        _allow(ruleset, path, handled)
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


def readable_paths(with_ours: bool = False) -> Iterable[Path]:
    """System libraries, Python, installed packages; this package and its problems only on demand."""
    ours = Path(__file__).resolve().parents[1]
    folders = ["/usr", "/lib", "/lib64", "/bin", "/sys", sys.base_prefix, sys.prefix, *sys.path]
    for name in dict.fromkeys(folders):
        if name and Path(name).is_dir():
            home = Path(name).resolve()
            yield from (home,) if with_ours else _without(home, ours)
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

    clone: int
    execute: tuple[int, ...]
    fork: tuple[int, ...]
    modes: tuple[int, ...]
    """Permissions and limits of its own files and processes: programs of the system set them."""
    refused: tuple[int, ...]
    own: tuple[int, ...]
    """Priorities and processors: allowed for the calling thread (0), not for other processes."""
    signals: tuple[int, ...]
    prlimit: int
    sockets: tuple[int, ...]
    set_times: int


_MACHINES = {
    "x86_64": _Numbers(
        56, (59, 322), (57, 58), (90, 91, 268, 452, 160),
        (41, 53, 101, 310, 311, 129, 434, 424, 438, 425, 321, 298, 165, 272, 308, 250,
         323, 92, 93, 94, 260, 280, 188, 189, 190, 197, 198, 199, 141, 251, 303, 304, 319, 447,
         248, 249, 253, 254, 294, 300, 301, 29, 30, 31, 64, 65, 66, 68, 69, 70, 71, 220, 240, 166, 155, 428, 429, 430, 431, 432, 442),
        (142, 144, 203, 314), (62, 200, 234), 302, (41, 53), 280,
    ),
    "aarch64": _Numbers(
        220, (221, 281), (), (52, 53, 452, 164),
        (198, 199, 117, 270, 271, 138, 434, 424, 438, 425, 280, 241, 40, 97, 268, 219, 282,
         55, 54, 88, 5, 6, 7, 14, 15, 16, 140, 30, 264, 265, 279, 447,
         217, 218, 26, 27, 262, 263, 194, 195, 196, 190, 191, 192, 193, 186, 187, 188, 189, 180, 39, 41, 428, 429, 430, 431,
         432, 442),
        (118, 119, 122, 274), (129, 130, 131), 261, (198, 199), 88,
    ),
}  # fmt: skip
_CLONE3, _CLONE_THREAD = 435, 0x10000
NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_AF_VSOCK = 40


def _seccomp(program: Program | None) -> str:
    """System calls: no sockets, no new processes, no signals to others, no looking into others."""
    machine = supported_machine()
    if not machine or machine not in _MACHINES:
        return "none"
    return "seccomp" if install_filter(_filter(machine, program)) == 0 else "none"


def _filter(machine: str, program: Program | None) -> list[Instruction]:
    """A filter as instructions: each test is followed by the answer that it guards."""
    numbers = _MACHINES[machine]
    may_fork = program is not None and program.may_fork
    refused = numbers.refused
    refused += () if program else (*numbers.execute, *numbers.modes)
    refused += () if may_fork else numbers.fork
    alone = program is not None and program.own_namespaces
    if alone:
        # files outside its folder are on read-only mounts: times can be set
        open_again = (*numbers.sockets, numbers.set_times)
        refused = tuple(number for number in refused if number not in open_again)
    lines = preamble(machine)
    for number in refused:
        lines += when_call(number, REFUSE)
    lines += when_call(_CLONE3, MISSING)
    if not may_fork:
        lines += when_call(numbers.clone, argument(0), if_set(_CLONE_THREAD, 1), REFUSE, ALLOW)
    else:  # a new namespace would bring rights that this one does not have
        lines += when_call(numbers.clone, argument(0), unless_set(NAMESPACES, 1), REFUSE, ALLOW)
    if alone:  # sockets to the machine below know no network namespace
        lines += when_call(
            numbers.sockets[0], argument(0), unless_equal(_AF_VSOCK, 1), REFUSE, ALLOW
        )
    for number in numbers.own:
        lines += when_call(number, argument(0), if_equal(0, 1), REFUSE, ALLOW)
    for number in () if alone else numbers.signals:
        lines += when_call(number, argument(0), if_equal(os.getpid(), 1), REFUSE, ALLOW)
    # Limits may be read, not set: the third argument is the new limit.
    if program is None:
        lines += when_call(numbers.prlimit, argument(2), if_equal(0, 1), REFUSE, ALLOW)
    return [*lines, ALLOW]
