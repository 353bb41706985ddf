"""Limits of this machine, told apart from faults of a candidate."""

from __future__ import annotations

from typing import Any

from torchstone.kernels.sessions.workshop import Ended


def is_out_of_memory(error: dict[str, Any] | None, ended: Ended | None) -> bool:
    """Whether a call failed because there was no more memory for it."""
    if error is not None:
        return bool(error.get("memory"))
    # the system ends what takes the last memory of a machine or of a control group by this signal
    return ended is not None and ended.reason == "killed by SIGKILL"
