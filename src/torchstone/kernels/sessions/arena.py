"""Memory that the referee and a candidate share: inputs that only the referee writes, and answers.

Arrays of a problem's own sizes do not go through messages. The referee fills the inputs; a candidate's
process sees them through a private mapping, and cannot write what the referee reads.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from dataclasses import dataclass, field

_ADD_SEALS = 1033
_SEAL_SHRINK, _SEAL_GROW, _SEAL_FUTURE_WRITE = 2, 4, 16


@dataclass(slots=True)
class Arena:
    """Two files in memory without a name; both are empty until somebody says how large they are."""

    inputs: int = field(default_factory=lambda: new_file("inputs"))
    outputs: int = field(default_factory=lambda: new_file("outputs"))

    @property
    def handles(self) -> tuple[int, int]:
        return self.inputs, self.outputs

    def make_room_for_inputs(self, size_bytes: int) -> None:
        """As large as the inputs are, for good."""
        os.ftruncate(self.inputs, max(size_bytes, 1))

    def make_room_for_outputs(self, size_bytes: int) -> None:
        os.ftruncate(self.outputs, max(size_bytes, 1))

    def seal_inputs(self) -> None:
        """From now on nobody can map them for writing; the referee has done so before."""
        with contextlib.suppress(OSError):  # before Linux 5.1 the private mapping has to do
            seals = _SEAL_SHRINK | _SEAL_GROW | _SEAL_FUTURE_WRITE
            fcntl.fcntl(self.inputs, _ADD_SEALS, seals)

    def close(self) -> None:
        """Give the memory back, as soon as no process maps it any more."""
        for handle in self.handles:
            os.close(handle)


def new_file(name: str) -> int:
    """A file in memory without a name, of no size yet."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(f"torchstone-{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with tempfile.TemporaryFile() as file:  # other systems have no files in memory
        return os.dup(file.fileno())
