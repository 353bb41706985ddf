"""The command that gives a process a network, shared memory and mounts of its own."""

from __future__ import annotations

import functools
import shutil
import subprocess

from torchstone.sandbox.cell import is_system_root

_OWN_PROCESSES = ("-p", "--fork", "--kill-child", "--mount-proc")
"""Processes see only their own kind, and all of them end with the first."""


@functools.cache
def namespaces() -> tuple[str, ...]:
    """`unshare` with as much as the system allows; nothing where it allows nothing.

    Root of the machine needs no user namespace for it, and stays able to become nobody.
    """
    return _first_that_works(("-nim",) if is_system_root() else (), ("-rnim",), ("-rni",), ("-rn",))


@functools.cache
def process_namespaces() -> tuple[str, ...]:
    """The same with process numbers of its own; nothing unless all of it is allowed."""
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
