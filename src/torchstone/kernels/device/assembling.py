"""Assembly made into machine code in a cell that holds nothing else.

A process with a candidate in it can start no program; what is compiled there is handed over.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from torchstone.kernels.messages.to_device import Assemble, Assembled
from torchstone.kernels.sessions.workshop import Buffers, Session, SessionError, Workshop

A = TypeVar("A")
MEMORY_BYTES = 4 << 30
_SAID_KEPT_BYTES = 4000
LATE = "did not end in its CPU time"
_ASSEMBLER_SECONDS = 10
"""CPU time of the assembler for one kernel; it takes a tenth of a second for most."""
_MOST_ASSEMBLED = 32
"""Requests for machine code within one question."""


@dataclass(frozen=True, slots=True)
class Assembler:
    """The assembler that comes with Triton."""

    path: str
    version: str

    def assemble(
        self, workshop: Workshop, source: bytes, arch: int, fusion: bool, seconds: float
    ) -> tuple[bytes, str]:
        """Machine code and everything that the assembler said; no code when it failed."""
        folder = workshop.scratch()
        (folder / "kernel.ptx").write_bytes(source)
        name = f"sm_{arch}{'a' if arch >= 90 else ''}"
        command = [self.path, "-v", "-lineinfo", *([] if fusion else ["--fmad=false"]),
                   "--regAllocOptLevel=2", f"--gpu-name={name}", "kernel.ptx", "-o", "kernel.cubin"]  # fmt: skip
        done = workshop.run_program(command, folder, seconds=seconds, memory_bytes=MEMORY_BYTES,
                                    cpu_seconds=_ASSEMBLER_SECONDS)  # fmt: skip
        if "time is up" in done.reason:
            return b"", f"ptxas {LATE}"
        made = folder / "kernel.cubin"
        code = made.read_bytes() if made.is_file() else b""
        return code, done.output[-_SAID_KEPT_BYTES:] or done.reason


@functools.cache
def assembler(arch: int) -> Assembler | str:
    """The assembler for a device, or why there is none."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return "triton is not installed"
    name = ("ptxas" if arch < 90 else "ptxas-blackwell") + (sysconfig.get_config_var("EXE") or "")
    path = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / name
    if not path.is_file():
        return "this Triton comes without the assembler ptxas"
    try:
        done = subprocess.run([str(path), "--version"], capture_output=True, text=True, check=False,
                              timeout=20)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"ptxas does not run here ({type(error).__name__})"
    found = re.search(r"release (\d+\.\d+)", done.stdout)
    return Assembler(str(path), found[1]) if found else "ptxas does not tell its version"


@dataclass(slots=True)
class DeviceSession(Session):
    """A session in which kernels are compiled: requests for machine code are served on the way."""

    tool: Assembler | None = None
    said: list[str] = field(default_factory=list)
    """What the assembler printed, in the order of the requests."""

    @classmethod
    def of(cls, session: Session, tool: Assembler | None) -> DeviceSession:
        """The same session, with an assembler at its side."""
        return cls(session.pid, session.channel, session.workshop, session.printed, tool=tool)

    def exchange(
        self, question: object, kinds: Sequence[type[A]], buffers: Buffers = (), *, seconds: float
    ) -> tuple[A, list[bytes]]:
        """Send a message and wait for its answer, assembling whatever is asked for before it."""
        message: object = question
        for _ in range(_MOST_ASSEMBLED):
            expected: tuple[type[A | Assemble], ...] = (*kinds, Assemble)
            answer, data = Session.exchange(self, message, expected, buffers, seconds=seconds)
            if not isinstance(answer, Assemble):
                return answer, data
            if len(data) != 1 or self.tool is None:
                break
            code, said = self.tool.assemble(
                self.workshop, data[0], answer.arch, answer.fusion, seconds
            )
            self.said.append(said)
            message = Assembled("" if code else said[-1000:] or "no machine code")
            buffers = [code] if code else []
        raise SessionError(self.end(why="asked for machine code in a way that no compiler does"))
