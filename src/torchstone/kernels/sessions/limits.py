"""Limits of this machine, told apart from faults of a candidate."""

from __future__ import annotations

from torchstone.core.quantity import human
from torchstone.core.text import Text
from torchstone.kernels.messages.facts import Told
from torchstone.kernels.sessions.workshop import Ended

MORE_MEMORY = Text(
    "give it more memory with --memory, or verify it on a machine that has more: running out of it is no "
    "fault of a kernel",
    "请用 --memory 提供更多内存，或在内存更大的机器上验证：内存不足并非内核的错误",
)


class LimitError(Exception):
    """A candidate could not be run to the end on this machine, which is no fault of its own."""

    def __init__(self, what: Text) -> None:
        super().__init__(what.en)
        self.what = what


def is_out_of_memory(error: Told | None, ended: Ended | None) -> bool:
    """Whether a call failed because there was no more memory for it."""
    if error is not None:
        return error.memory
    # the system ends what takes the last memory of a machine or of a control group by this signal
    return ended is not None and ended.reason == "killed by SIGKILL"


def ran_out(name: str, budget_bytes: int) -> LimitError:
    """There was not enough memory for a call, or for making a model."""
    size = human(budget_bytes, "B")
    return LimitError(
        Text(
            f"{name}: ran out of memory ({size} may be used, --memory)",
            f"{name}：内存不足（可用 {size}，--memory）",
        )
    )
