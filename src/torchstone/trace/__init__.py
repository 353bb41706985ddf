"""Every step of a run that talks to a language model: recorded, readable, replayable.

`Trace` writes the files a person reads, one folder for each operator, and beside them an
append-only journal that a program reads.
"""

from torchstone.trace.actions import ActionType
from torchstone.trace.journal import Journal
from torchstone.trace.record import Call, Record
from torchstone.trace.trace import Trace

__all__ = ["ActionType", "Call", "Journal", "Record", "Trace"]
