"""Limits of this machine, told apart from faults of a candidate."""

from __future__ import annotations

from typing import Any

from torchstone.kernels.sessions.workshop import Ended

_MEMORY_KINDS = ("MemoryError", "OutOfMemoryError", "ArrayMemoryError", "_ArrayMemoryError")
_MEMORY_WORDS = (
    "allocate memory",
    "bad_alloc",
    "Cannot allocate",
    "Unable to allocate",
    "out of memory",
)


def is_out_of_memory(error: dict[str, Any] | None, ended: Ended | None) -> bool:
    """Whether a call failed because there was no more memory for it."""
    if error is not None:
        words = any(item in error["text"] for item in _MEMORY_WORDS)
        return error["kind"] in _MEMORY_KINDS or words
    # the system ends what takes the last memory of a machine or of a control group by this signal
    return ended is not None and ended.reason == "killed by SIGKILL"
