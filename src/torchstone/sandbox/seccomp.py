"""Filters of system calls: instructions, and how a process puts itself behind them."""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from collections.abc import Sequence

Instruction = tuple[int, int, int, int]
"""Code, how many instructions to skip when a test holds and when it does not, and a number."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_NO_NEW_PRIVS = 38
_SET_FILTER, _NEW_LISTENER = 1, 1 << 3
_CALL = {"x86_64": 317, "aarch64": 277}
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_OTHER_NUMBERING = 0x40000000
"""x86_64 has a second set of numbers for the same calls; tests of the first set do not see them."""

_LOAD, _EQUAL, _ABOVE, _SET, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
CALL_NUMBER, _ARCHITECTURE = 0, 4
ALLOW: Instruction = (_RETURN, 0, 0, 0x7FFF0000)
REFUSE: Instruction = (_RETURN, 0, 0, 0x00050001)
"""EPERM."""
MISSING: Instruction = (_RETURN, 0, 0, 0x00050026)
"""ENOSYS: the C library then uses the older call."""
ASK: Instruction = (_RETURN, 0, 0, 0x7FC00000)
"""A supervisor decides."""


def load(offset: int) -> Instruction:
    return (_LOAD, 0, 0, offset)


def argument(number: int, high: bool = False) -> Instruction:
    """Load half of an argument of the call."""
    return load(16 + 8 * number + (4 if high else 0))


def mask(bits: int) -> Instruction:
    return (_AND, 0, 0, bits)


def unless_equal(value: int, skip: int) -> Instruction:
    """Go on where the loaded number is this one; else skip."""
    return (_EQUAL, 0, skip, value)


def if_equal(value: int, skip: int) -> Instruction:
    return (_EQUAL, skip, 0, value)


def unless_set(bits: int, skip: int) -> Instruction:
    """Go on where any of these bits is set; else skip."""
    return (_SET, 0, skip, bits)


def if_set(bits: int, skip: int) -> Instruction:
    return (_SET, skip, 0, bits)


def when_call(number: int, *body: Instruction) -> list[Instruction]:
    """Do this for one system call; the body ends with an answer."""
    return [unless_equal(number, len(body)), *body]


def preamble(machine: str) -> list[Instruction]:
    """Refuse calls of other instruction sets and numberings, then load the number of the call."""
    lines = [load(_ARCHITECTURE), if_equal(AUDIT[machine], 1), REFUSE, load(CALL_NUMBER)]
    if machine == "x86_64":
        lines += [(_ABOVE, 0, 1, _OTHER_NUMBERING), REFUSE]
    return lines


def supported_machine() -> str:
    """The name of this machine where its system calls are known; else nothing."""
    known = platform.machine() if sys.platform.startswith("linux") else ""
    return known if known in AUDIT else ""


def install_filter(lines: Sequence[Instruction], listen: bool = False) -> int:
    """Put this process behind a filter for good; -1 where the kernel refuses.

    With `listen` the result is the handle on which a supervisor is asked.
    """
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(
        struct.pack("<HxxxxxxQ", len(lines), ctypes.addressof(code))
    )
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    flags = _NEW_LISTENER if listen else 0
    return int(_LIBC.syscall(_CALL[platform.machine()], _SET_FILTER, flags, ctypes.byref(program)))
