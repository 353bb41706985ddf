"""Kernels compiled for a device that need not be here: the compiler in a cell, the assembler too.

The compiler's process holds the candidate and can start no program. It hands the assembly over,
and this side has it assembled in a cell that holds nothing else.
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
from typing import Any

from torchstone.kernels.calls import Call
from torchstone.kernels.harness.triton_launch import types_of
from torchstone.kernels.run import Run
from torchstone.kernels.said import steady
from torchstone.kernels.workshop import Session, SessionError, Workshop

MOST_OWN = 6
"""Distinct launches at the problem's own sizes that are compiled; each takes about half a second."""
MOST_OTHER = 2
"""Distinct launches at other sizes."""
_MEMORY_BYTES = 4 << 30
_CPU_SECONDS = 30
_ASSEMBLER_SECONDS = 10
"""CPU time of the assembler for one kernel; it takes a tenth of a second for most."""
_LATE = "did not end in its CPU time"
_MOST_ASSEMBLED = 32
"""Requests for machine code within one question."""
_SHARED_BYTES = {75: 65536, 80: 166912, 86: 101376, 87: 166912, 89: 101376, 90: 232448,
                 100: 232448, 120: 101376}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """A device by its compute capability, and the shared memory that one program may have."""

    arch: int = 80

    @property
    def name(self) -> str:
        return f"cuda:{self.arch}"

    @property
    def shared_bytes(self) -> int:
        return _SHARED_BYTES.get(self.arch, 101376)


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
        session = workshop.open(
            "candidate", scratch=folder, memory_bytes=_MEMORY_BYTES,
            cpu_seconds=_ASSEMBLER_SECONDS, execute=command, environment={"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)},
        )  # fmt: skip
        try:
            session.ask({}, seconds=seconds)
        except SessionError as error:
            made = folder / "kernel.cubin"
            code = made.read_bytes() if made.is_file() else b""
            late = "time is up" in error.ended.reason
            said = f"ptxas {_LATE}" if late else error.ended.output
            return (b"" if late else code), said or error.ended.reason
        raise AssertionError("an assembler that speaks the protocol of a session")


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

    def ask(
        self, header: dict[str, Any], buffers: Sequence[bytes | memoryview] = (), *, seconds: float
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Send a request and wait for its answer, assembling whatever is asked for before it."""
        answer, data = Session.ask(self, header, buffers, seconds=seconds)
        for _ in range(_MOST_ASSEMBLED):
            if "assemble" not in answer or self.tool is None:
                return answer, data
            if len(data) != 1 or not isinstance(answer["assemble"], int):
                break
            arch, fusion = answer["assemble"], bool(answer.get("fusion"))
            code, said = self.tool.assemble(self.workshop, data[0], arch, fusion, seconds)
            self.said.append(said)
            reply = {"said": "" if code else said[-1000:] or "no machine code"}
            answer, data = Session.ask(self, reply, [code] if code else [], seconds=seconds)
        raise SessionError(self.end(why="asked for machine code in a way that no compiler does"))


@dataclass(frozen=True, slots=True)
class Made:
    """One kernel that was compiled, and what its code needs."""

    kernel: str
    types: str
    registers: int | None
    spilled_bytes: int | None
    shared_bytes: int
    tf32: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Refused:
    """One kernel that was not compiled, and the compiler's words."""

    kernel: str
    kind: str
    text: str
    line: int


@dataclass(slots=True)
class Compiled:
    """What became of all launches of a candidate."""

    target: Target
    made: list[Made] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    elsewhere: list[Refused] = field(default_factory=list)
    """Refused at sizes that are not the problem's own, where a kernel may refuse."""
    left_out: int = 0
    gap: str = ""
    """Why the compiler could not be asked; empty when it could."""


def compiled(run: Run, target: Target | None = None) -> Compiled:
    """Every distinct launch of the candidate's earlier calls, compiled for a device."""
    target = target or Target()
    result = Compiled(target)
    own, others = _launches(run)
    result.left_out = max(0, len(own) - MOST_OWN)
    own = own[:MOST_OWN]
    chosen = [*own, *others[:MOST_OTHER]]
    tool = assembler(target.arch)
    if isinstance(tool, str):
        result.gap = tool
        return result
    session = DeviceSession.of(
        run.workshop.open("triton_device", memory_bytes=_MEMORY_BYTES, cpu_seconds=_CPU_SECONDS),
        tool,
    )
    try:
        _compile_all(run, session, result, tool, chosen, len(own))
    except SessionError as error:
        result.refused.append(Refused("", "", f"the compiler ended: {error.ended.reason}", 0))
    finally:
        session.end(late=True)
    return result


def _compile_all(
    run: Run, session: DeviceSession, result: Compiled, tool: Assembler,
    chosen: list[dict[str, Any]], own: int,
) -> None:  # fmt: skip
    seconds = run.timeout_seconds
    try:
        answer, _ = session.ask({"do": "open", "path": tool.path, "version": tool.version,
                                 "arch": result.target.arch,
                                 "most_shared": result.target.shared_bytes},
                                seconds=seconds)  # fmt: skip
    except SessionError as error:
        result.gap = f"Triton's compiler does not start: {error.ended.reason}"
        return
    if "error" in answer:
        result.gap = f"Triton's compiler does not start: {_words(answer['error'])}"
        return
    # From here on the candidate is loaded: whatever goes wrong is its own doing.
    answer, _ = session.ask({"do": "load", "source": run.candidate.source}, seconds=seconds)
    if "error" in answer:
        result.refused.append(_refused("", answer["error"]))
        return
    for name in _missing(run, session, chosen):
        text = "is launched under the interpreter and does not exist without it"
        result.refused.append(Refused(name, "", text, 0))
    for number, launch in enumerate(chosen):
        if not result.refused and not result.gap:
            _compile(session, result, launch, number < own, seconds)


def _compile(
    session: DeviceSession, result: Compiled, launch: dict[str, Any], own: bool, seconds: float
) -> None:
    printed = session.printed.stat().st_size
    name = launch["kernel"]
    try:
        answer, _ = session.ask({"do": "compile", "launch": launch}, seconds=seconds)
    except SessionError as error:
        if "time is up" not in error.ended.reason:
            raise
        result.gap = f"{name}: the compiler {_LATE}"
        return
    if _LATE in answer.get("error", {}).get("text", ""):
        result.gap = f"{name}: ptxas {_LATE}"
    elif "undescribed" in answer:
        result.gap = result.gap or f"{name} is given {answer['undescribed']}: not compiled"
    elif "error" in answer:
        said = session.printed.read_bytes()[printed:].decode("utf-8", "replace")
        refused = _refused(name, answer["error"], said)
        (result.refused if own else result.elsewhere).append(refused)
    else:
        said = session.said[-1] if session.said else ""
        result.made.append(_made(launch, answer, said))


def _missing(run: Run, session: DeviceSession, chosen: list[dict[str, Any]]) -> list[str]:
    """Kernels that do not exist after loading, and not after a call in which none runs either."""
    wanted = [list(key) for key in dict.fromkeys((i["kernel"], i["line"]) for i in chosen)]
    ask = {"do": "missing", "wanted": wanted}
    answer, _ = session.ask(ask, seconds=run.timeout_seconds)
    if answer.get("missing", wanted):
        case = run.main.own[0]
        tree, buffers = run.ask_referee("inputs", number=case.number)
        weights, first = run.ask_referee("weights", seed=case.seed)
        session.ask({"do": "trial", "init": weights["init"], "tree": tree["tree"],
                     "seed": case.seed, "weights": len(first)}, [*first, *buffers],
                    seconds=run.timeout_seconds)  # fmt: skip
        answer, _ = session.ask(ask, seconds=run.timeout_seconds)
    return [str(name) for name, _ in answer.get("missing", wanted)]


def _launches(run: Run) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Distinct launches at the problem's own sizes, and those at other sizes.

    Families may run at smaller sizes than the problem's own to save an interpreter's time.
    """
    found: dict[str, dict[str, Any]] = {}
    calls, shapes = run.main.calls, run.main.own[0].shapes
    own = _of_calls([call for call in calls if call.shapes == shapes], found)
    return own, _of_calls([call for call in calls if call.shapes != shapes and call.right], found)


def _of_calls(calls: list[Call], found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    new = []
    for call in calls:
        for launch in call.reply.get("kernels", []):
            key = repr((launch["kernel"], launch["line"], types_of(launch)))
            if key not in found:
                found[key] = launch
                new.append(launch)
    return new


def _refused(name: str, error: dict[str, Any], printed: str = "") -> Refused:
    """The compiler's words; where it only says that it failed, what it printed before."""
    text = str(error["text"])
    said = re.search(r"error: (.+)", printed)
    if said and (not text or "failed" in text):
        text = said[1].strip()
    return Refused(name, str(error["kind"]), steady(text), int(error["line"]))


def _words(error: dict[str, Any]) -> str:
    return steady(": ".join(part for part in (error["kind"], error["text"]) if part))


def _made(launch: dict[str, Any], answer: dict[str, Any], printed: str) -> Made:
    registers = re.search(r"Used (\d+) registers", printed)
    spills = [int(found) for found in re.findall(r"(\d+) bytes spill", printed)]
    types = ", ".join(f"{name}: {kind}" for name, kind in types_of(launch).items())
    return Made(
        launch["kernel"], types, int(registers[1]) if registers else None,
        sum(spills) if spills else None, int(answer["shared"]), bool(answer["tf32"]),
        float(answer["seconds"]),
    )  # fmt: skip
