"""What a step does, and what the conductor calls its own look at it."""

from __future__ import annotations

from enum import Enum


class ActionType(Enum):
    """A step of the loop. Files carry the name; the older spelling is read as well."""

    DO_DESIGNER = "DoDesigner"
    FIX_DESIGNER = "FixDesigner"
    DO_CODER = "DoCoder"
    FIX_CODER = "FixCoder"
    VERIFY = "Verify"
    EXIT = "Exit"

    @classmethod
    def read(cls, text: str) -> ActionType:
        """From a name (`DO_CODER`) or the older spelling (`DoCoder`); ValueError for others."""
        for item in cls:
            if text in (item.name, item.value):
                return item
        raise ValueError(f"unknown action {text!r}")


START = "START"
"""What the record is called that holds the settings of a task."""

WRITING = frozenset(
    {ActionType.DO_DESIGNER, ActionType.FIX_DESIGNER, ActionType.DO_CODER, ActionType.FIX_CODER}
)
"""Steps in which a model writes."""

CHECKS = {
    ActionType.DO_DESIGNER: "CheckDesigner",
    ActionType.FIX_DESIGNER: "CheckDesigner",
    ActionType.DO_CODER: "CheckCoder",
    ActionType.FIX_CODER: "CheckCoder",
    ActionType.VERIFY: "AnalyzeError",
}
"""What the conductor's look at such a step is called in file names."""
