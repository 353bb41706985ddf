"""A network of its own for this process: loopback, and nothing behind it.

A namespace takes everything that goes by an address of the internet, and the abstract sockets.
Sockets that are files need a second wall, because every process that sees a file can connect to
it: only those below the scratch folder are reached, by way of a supervisor (`supervisor`).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import os
import socket
import struct
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from torchstone.sandbox.cell import NAMESPACES
from torchstone.sandbox.seccomp import (
    ALLOW,
    ASK,
    MISSING,
    REFUSE,
    Instruction,
    argument,
    if_equal,
    install_filter,
    mask,
    preamble,
    supported_machine,
    unless_equal,
    unless_set,
    when_call,
)
from torchstone.sandbox.supervisor import Calls, supervise

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 4, 24
_KEPT_RIGHTS = sum(1 << number for number in (0, 1, 2, 3, 5, 6, 7))
"""Of root: owners, modes and contents of files, signals, and to become another user. What changes
networks, mounts or other processes is given up."""
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _UP = 0x8913, 0x8914, 1
_UNIX, _STREAM, _SEQPACKET = 1, 1, 5
_FAMILIES = (2, 10, 16)
"""IPv4, IPv6, and netlink, by which a process asks about its own network. All others know no
namespace, or nobody trains with them."""
MARK = "TORCHSTONE_NETWORK"
"""Names the network namespace that a sandbox has made, for processes inside it."""


class Network(Enum):
    """What keeps a process from the network."""

    OWN = "a network namespace, and a supervisor for sockets that are files"
    OUTER = "the sandbox around it"
    NO_SOCKETS = "no sockets at all (seccomp)"
    OPEN = "nothing"


def close_network(scratch: str, tell: Callable[[tuple[str, ...]], None]) -> Network:
    """Close the network for this process and all that it starts.

    Where a supervisor is needed, the process goes on in a child; the parent watches it, calls
    `tell` with the addresses that were out of reach, and ends as the child did.
    """
    if is_inside_sandbox():
        return Network.OUTER
    if can_close_network():
        return _go_on_in_child(scratch, tell)
    return Network.NO_SOCKETS if _refuse_sockets() else Network.OPEN


def is_inside_sandbox() -> bool:
    """Whether this process is in a network that our own sandbox has made, or can make no socket."""
    with contextlib.suppress(OSError):
        if os.environ.get(MARK) == own_namespace():
            return True
    for family in (socket.AF_INET, getattr(socket, "AF_UNIX", socket.AF_INET)):
        try:
            socket.socket(family, socket.SOCK_STREAM).close()
        except PermissionError:
            continue
        except OSError:
            return False
        return False
    return True


def own_namespace() -> str:
    """The name of the network namespace of this process, which no other has."""
    return os.readlink("/proc/self/ns/net")


@functools.cache
def can_close_network() -> bool:
    """Whether this system can hold both walls, tried in a process that ends at once."""
    if not supported_machine() or not hasattr(os, "pidfd_open"):
        return False
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            _enter_namespace()
            os._exit(0 if install_filter(_filter(), listen=True) >= 0 else 1)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _go_on_in_child(scratch: str, tell: Callable[[tuple[str, ...]], None]) -> Network:
    told, say = os.pipe()
    done, release = os.pipe()
    child = os.fork()
    if child:
        os.close(say)
        os.close(done)
        supervise(child, told, release, scratch, tell)
    os.close(told)
    os.close(release)
    _enter_namespace()
    listener = install_filter(_filter(), listen=True)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "the filter of system calls was refused")
    os.write(say, struct.pack("i", listener))
    os.read(done, 1)  # the supervisor has its own handle now
    for handle in (listener, say, done):
        os.close(handle)
    return Network.OWN


def _enter_namespace() -> None:
    """A network with nothing but loopback; no rights are left that would lead out of it."""
    user, group = os.geteuid(), os.getegid()
    if _LIBC.unshare(_CLONE_NEWNET) != 0:
        if _LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "no network namespace")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    switch_loopback_on()
    _give_up_rights()
    _LIBC.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # the supervisor looks into this process


def _give_up_rights() -> None:
    for number in range(64):
        if not _KEPT_RIGHTS >> number & 1:
            _LIBC.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    header = ctypes.create_string_buffer(struct.pack("<Ii", 0x20080522, 0))
    held = ctypes.create_string_buffer(24)
    _LIBC.capget(header, held)
    words = struct.unpack("<6I", held.raw)
    kept = [word & _KEPT_RIGHTS if index < 3 else 0 for index, word in enumerate(words)]
    data = ctypes.create_string_buffer(struct.pack("<6I", *kept))
    if _LIBC.capset(header, data) != 0:
        raise OSError(ctypes.get_errno(), "rights over the network could not be given up")


def switch_loopback_on() -> None:
    """Ranks on this machine talk to each other; nothing else is reachable."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _UP))


_WAYS_OUT = {
    "x86_64": (101, 155, 165, 166, 175, 246, 272, 308, 310, 311, 313, 320, 321),
    "aarch64": (117, 41, 40, 39, 105, 104, 97, 268, 270, 271, 273, 294, 280),
}
"""ptrace, pivot_root, mount, umount2, init_module, kexec_load, unshare, setns, process_vm_readv,
process_vm_writev, finit_module, kexec_file_load, bpf."""
_NEWER_WAYS_OUT = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442)
"""io_uring, which connects without a system call; mounts by handle; pidfd_getfd: on all machines."""
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435


def _filter() -> list[Instruction]:
    """Sockets of other families are refused; a supervisor is asked about what has an address."""
    machine = supported_machine()
    calls = Calls.of(machine)
    lines = preamble(machine)
    for number in (*_WAYS_OUT[machine], *_NEWER_WAYS_OUT):
        lines += when_call(number, REFUSE)
    lines += when_call(_CLONE3, MISSING)
    lines += when_call(_CLONE[machine], argument(0), unless_set(NAMESPACES, 1), REFUSE, ALLOW)
    # a datagram can name another receiver each time: sockets that are files carry streams only
    kinds = (argument(1), mask(0xF), if_equal(_STREAM, 2), if_equal(_SEQPACKET, 1), ASK, ALLOW)
    families: list[Instruction] = []
    for place, family in enumerate(_FAMILIES):
        families.append(if_equal(family, len(_FAMILIES) - place))
    for number in (calls.socket, calls.socketpair):
        lines += when_call(
            number, argument(0), unless_equal(_UNIX, len(kinds)), *kinds, *families, ASK, ALLOW
        )
    lines += when_call(
        calls.sendto,
        argument(4),
        if_equal(0, 1),
        ASK,
        argument(4, high=True),
        if_equal(0, 1),
        ASK,
        ALLOW,
    )
    for number in (calls.connect, calls.sendmsg, calls.sendmmsg):
        lines += when_call(number, ASK)
    return [*lines, ALLOW]


def _refuse_sockets() -> bool:
    """Without a namespace: pairs of sockets for itself, and no other."""
    machine = supported_machine()
    if not machine:
        return False
    calls = Calls.of(machine)
    lines = preamble(machine)
    for number in (calls.socket, *_WAYS_OUT[machine], *_NEWER_WAYS_OUT):
        lines += when_call(number, REFUSE)
    kinds = (argument(1), mask(0xF), if_equal(_STREAM, 1), REFUSE, ALLOW)
    lines += when_call(calls.socketpair, *kinds)
    return install_filter([*lines, ALLOW]) == 0
