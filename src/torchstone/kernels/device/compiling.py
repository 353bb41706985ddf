"""Kernels compiled for a device that need not be here, in a cell with the candidate."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from torchstone.kernels.device.assembling import (
    LATE,
    MEMORY_BYTES,
    Assembler,
    DeviceSession,
    assembler,
)
from torchstone.kernels.messages import to_device as ask
from torchstone.kernels.messages.facts import Argument, KernelLaunch, Told
from torchstone.kernels.messages.to_referee import (
    Done,
    GiveInputs,
    GivenInputs,
    GiveWeights,
    Opened,
    Weights,
)
from torchstone.kernels.sessions.calls import Call
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import SessionError
from torchstone.kernels.verdicts.said import steady

MOST_OWN = 6
"""Distinct launches at the problem's own sizes that are compiled; each takes about half a second."""
MOST_OTHER = 2
"""Distinct launches at other sizes."""
_CPU_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Target:
    """A device by its compute capability, and the shared memory that one program may have."""

    arch: int = 80
    shared_bytes: int = 163 << 10

    @property
    def name(self) -> str:
        return f"cuda:{self.arch}"


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
        run.workshop.open("triton_device", memory_bytes=MEMORY_BYTES, cpu_seconds=_CPU_SECONDS),
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
    chosen: list[KernelLaunch], own: int,
) -> None:  # fmt: skip
    seconds = run.timeout_seconds
    try:
        opening = ask.OpenCompiler(
            tool.path, tool.version, result.target.arch, result.target.shared_bytes
        )
        opened, _ = session.ask(opening, Opened, seconds=seconds)
    except SessionError as error:
        result.gap = f"Triton's compiler does not start: {error.ended.reason}"
        return
    if isinstance(opened, Told):
        result.gap = f"Triton's compiler does not start: {_words(opened)}"
        return
    # From here on the candidate is loaded: whatever goes wrong is its own doing.
    loading = ask.LoadKernels(run.candidate.source)
    answer, _ = session.ask(loading, ask.Constants, seconds=seconds)
    if isinstance(answer, Told):
        result.refused.append(_refused("", answer))
        return
    result.refused += _other_constants(chosen, answer.globals)
    for name in _missing(run, session, chosen):
        text = "is launched under the interpreter and does not exist without it"
        result.refused.append(Refused(name, "", text, 0))
    for number, launch in enumerate(chosen):
        if not result.refused and not result.gap:
            _compile(session, result, launch, number < own, seconds)


def _compile(
    session: DeviceSession, result: Compiled, launch: KernelLaunch, own: bool, seconds: float
) -> None:
    printed = session.printed.stat().st_size
    name = launch.kernel
    question = ask.CompileLaunch(launch)
    try:
        answer, _ = session.ask(question, ask.CompiledLaunch, seconds=seconds)
    except SessionError as error:
        if "time is up" not in error.ended.reason:
            raise
        result.gap = f"{name}: the compiler {LATE}"
        return
    if isinstance(answer, Told):
        answer = ask.CompiledLaunch(error=answer)
    if answer.error is not None and LATE in answer.error.text:
        result.gap = f"{name}: ptxas {LATE}"
    elif answer.undescribed:
        result.gap = result.gap or f"{name} is given {answer.undescribed}: not compiled"
    elif answer.error is not None:
        said = session.printed.read_bytes()[printed:].decode("utf-8", "replace")
        refused = _refused(name, answer.error, said)
        (result.refused if own else result.elsewhere).append(refused)
    else:
        said = session.said[-1] if session.said else ""
        result.made.append(_made(launch, answer, said))


def _missing(run: Run, session: DeviceSession, chosen: list[KernelLaunch]) -> list[str]:
    """Kernels that do not exist after loading, and not after a call in which none runs either."""
    wanted = list(dict.fromkeys(ask.KernelName(item.kernel, item.line) for item in chosen))
    missing = _not_there(run, session, wanted)
    if missing:
        case = run.main.own[0].case
        given, buffers = run.ask_for_data(GiveInputs(case.number), GivenInputs)
        weights, first = run.ask_for_data(GiveWeights(case.seed), Weights)
        trial = ask.TryCall(weights.init, given.tree, case.seed, len(first))
        session.ask(trial, Done, [*first, *buffers], seconds=run.timeout_seconds)
        missing = _not_there(run, session, wanted)
    return [item.name for item in missing]


def _not_there(
    run: Run, session: DeviceSession, wanted: list[ask.KernelName]
) -> list[ask.KernelName]:
    answer, _ = session.ask(ask.FindMissing(wanted), ask.Missing, seconds=run.timeout_seconds)
    return wanted if isinstance(answer, Told) else answer.missing


def _launches(run: Run) -> tuple[list[KernelLaunch], list[KernelLaunch]]:
    """Distinct launches at the problem's own sizes, and those at other sizes.

    Families may run at smaller sizes than the problem's own to save an interpreter's time.
    """
    found: dict[str, KernelLaunch] = {}
    calls, shapes = run.main.calls, run.main.own[0].shapes
    own = _of_calls([call for call in calls if call.shapes == shapes], found)
    return own, _of_calls([call for call in calls if call.shapes != shapes and call.right], found)


def _of_calls(calls: list[Call], found: dict[str, KernelLaunch]) -> list[KernelLaunch]:
    new = []
    for call in calls:
        for launch in call.reply.kernels:
            key = repr((launch.kernel, launch.line, types_of(launch)))
            if key not in found:
                found[key] = launch
                new.append(launch)
    return new


def types_of(launch: KernelLaunch) -> dict[str, str]:
    """The types of the arguments and the values of the constants: what decides on the code."""
    return {
        name: _value(item) if name in launch.constants else _kind(item)
        for name, item in launch.arguments.items()
    }


def _value(told: Argument) -> str:
    if told.kind == "plain":
        return repr(told.value)
    inner = ", ".join(map(_value, told.items))
    return f"{told.kind} {told.name}{f'({inner})' if inner else ''}"


def _kind(told: Argument) -> str:
    if told.kind == "pointer":
        return f"*{told.name}"
    if isinstance(told.value, bool):
        return "i1"
    if isinstance(told.value, int):
        return "i32" if -(2**31) <= told.value < 2**31 else "i64"
    return "fp32" if isinstance(told.value, float) or told.kind == "float" else _value(told)


def _other_constants(launches: list[KernelLaunch], there: dict[str, str]) -> list[Refused]:
    """Constants of the file that are another value when no interpreter runs."""
    here = launches[0].globals if launches else {}
    text = "`{name}` is {here} under the interpreter and {there} without it"
    return [
        Refused("", "", text.format(name=name, here=value[:40], there=there[name][:40]), 0)
        for name, value in here.items()
        if name in there and there[name] != value
    ]


def _refused(name: str, error: Told, printed: str = "") -> Refused:
    """The compiler's words; where it only says that it failed, what it printed before."""
    text = error.text
    said = re.search(r"error: (.+)", printed)
    if said and (not text or "failed" in text):
        text = said[1].strip()
    return Refused(name, error.kind, steady(text), error.line)


def _words(error: Told) -> str:
    return steady(": ".join(part for part in (error.kind, error.text) if part))


def _made(launch: KernelLaunch, answer: ask.CompiledLaunch, printed: str) -> Made:
    registers = re.search(r"Used (\d+) registers", printed)
    spills = [int(found) for found in re.findall(r"(\d+) bytes spill", printed)]
    types = ", ".join(f"{name}: {kind}" for name, kind in types_of(launch).items())
    return Made(
        launch.kernel, types, int(registers[1]) if registers else None,
        sum(spills) if spills else None, answer.shared, answer.tf32, answer.seconds,
    )  # fmt: skip
