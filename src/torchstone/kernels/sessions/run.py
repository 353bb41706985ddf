"""One verification under way: its processes, and what they have shown so far. Gates read from here."""

from __future__ import annotations

from torchstone.core.text import Text
from torchstone.kernels.sessions import first_session
from torchstone.kernels.sessions.calls import Main
from torchstone.kernels.sessions.processes import Processes
from torchstone.kernels.sessions.question import Question


class Run(Processes):
    """A problem, a candidate, and what is known of them so far."""

    shown: Main | None = None
    """What the first session showed; None before somebody asked."""
    full: Question | Text | None = None
    """The problem's own inputs in shared memory, or what is in the way; None before somebody asked."""

    @property
    def main(self) -> Main:
        """What the first session showed; it is held now where it was not."""
        if self.shown is None:
            self.shown = first_session.run(self)
        return self.shown
