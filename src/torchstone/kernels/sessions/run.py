"""One verification under way: its processes, and what the candidate's first session showed. Gates read from here."""

from __future__ import annotations

from torchstone.kernels.sessions import first_session
from torchstone.kernels.sessions.calls import Main
from torchstone.kernels.sessions.processes import Processes


class Run(Processes):
    """A problem, a candidate, and what is known of them so far."""

    shown: Main | None = None
    """What the first session showed; None before somebody asked."""

    @property
    def main(self) -> Main:
        """What the first session showed; it is held now where it was not."""
        if self.shown is None:
            self.shown = first_session.run(self)
        return self.shown
