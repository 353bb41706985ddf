"""A candidate on a device, judged like everywhere else: the same cases, oracle and bounds.

Everything takes the name of the device; "cpu" is one, which is how this is tried without a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from torchstone.kernels.device.assembling import Assembler, DeviceSession, assembler
from torchstone.kernels.messages import to_device as ask
from torchstone.kernels.messages.facts import Told
from torchstone.kernels.messages.to_referee import GiveInputs, GivenInputs, Opened
from torchstone.kernels.sessions.calls import Call
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import SessionError, Workshop

ROUNDS = 9
WARM_UP = 2
FAMILIES = ("negative", "large", "tiny", "nan", "inf", "strided", "prime", "one", "larger")
_CPU_SECONDS = 300
_BROKEN = ("CUDA error", "illegal memory access", "device-side assert", "misaligned address")
"""Words of a device that has stopped: no way to refuse a size."""


@dataclass(slots=True)
class OnDevice:
    """What a device showed."""

    device: str
    calls: list[Call] = field(default_factory=list)
    ours_s: list[float] = field(default_factory=list)
    theirs_s: list[float] = field(default_factory=list)
    error: Told | None = None
    """Loading or making the candidate there failed."""
    ended: str = ""
    nothing: str = ""
    """Why nothing was run; empty when something was."""

    @property
    def wrong(self) -> list[Call]:
        """Calls that are neither right nor refused as they may be."""
        return [call for call in self.calls if not call.right and not _may_refuse(call)]

    def changed(self, writes: list[bool]) -> list[tuple[Call, int]]:
        """Inputs that a call changed and that the problem does not change itself."""
        found = []
        for call in self.calls:
            arrays = [item for item in call.reply.inputs_after if item]
            pairs = enumerate(zip(call.sent, arrays, strict=False))
            found += [
                (call, i) for i, (sent, now) in pairs
                if sent != now and not (i < len(writes) and writes[i])
            ]  # fmt: skip
        return found


def _may_refuse(call: Call) -> bool:
    text = call.error.text if call.error is not None else ""
    return call.refused and not any(word in text for word in _BROKEN)


def found_device() -> str:
    """The name that torch has for the device of this machine; empty where there is none."""
    seen = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()
    return "cuda" if seen else ""


def run_on(run: Run, device: str, workshop: Workshop) -> OnDevice:
    """Call the candidate on a device and have the referee judge it, then time it there."""
    result = OnDevice(device)
    result.nothing, tool = _tool_for(run, device, workshop)
    if result.nothing:
        return result
    session = _open(workshop, device, tool)
    reference = _open(workshop, device, tool)
    try:
        result.error = _make_ready(run, session, "candidate", device, tool)
        if result.error is not None:
            return result
        _judged(run, session, result)
        if not result.wrong and not result.changed(run.facts.writes_inputs):
            _timed(run, session, reference, result, tool)
    except SessionError as error:
        result.ended = error.ended.reason
    finally:
        session.end(late=True)
        reference.end(late=True)
    return result


def _tool_for(run: Run, device: str, workshop: Workshop) -> tuple[str, Assembler | None]:
    """Why nothing can be run there, or nothing and the assembler for it, where one is needed."""
    if device == "cpu":
        return "", None
    if run.problem.framework != "torch":
        return f"a {run.problem.framework} problem hands over what stays on the host", None
    session = workshop.open("on_device", memory_bytes=0, cpu_seconds=_CPU_SECONDS)
    try:
        question = ask.IsAvailable(device)
        answer, _ = session.ask(question, ask.Available, seconds=run.timeout_seconds)
    except SessionError as error:
        return f"torch does not reach the device: {error.ended.reason}", None
    finally:
        session.end(late=True)
    if isinstance(answer, Told):
        return answer.text, None
    said = answer.said
    if said or run.candidate.implementation != "triton":
        return said, None
    said = workshop.missing("driver")
    if said:
        return f"Triton's driver cannot be built: {said}", None
    tool = assembler(answer.arch)
    return (tool, None) if isinstance(tool, str) else ("", tool)


def _open(workshop: Workshop, device: str, tool: Assembler | None) -> DeviceSession:
    # A device maps far more memory than it uses: only on the host does a limit make sense.
    memory = 3 << 29 if device == "cpu" else 0
    session = workshop.open("on_device", memory_bytes=memory, cpu_seconds=_CPU_SECONDS)
    return DeviceSession.of(session, tool)


def _make_ready(
    run: Run, session: DeviceSession, who: str, device: str, tool: Assembler | None
) -> Told | None:
    """Load a candidate or the reference and make its models; an error as it was told."""
    source = run.candidate.source if who == "candidate" else run.problem.source
    implementation = run.candidate.implementation if who == "candidate" else "torch"
    path, version = (tool.path, tool.version) if tool is not None else ("", "")
    opening = ask.OpenDevice(source, who, device, implementation, path, version)
    opened, _ = session.ask(opening, Opened, seconds=run.timeout_seconds)
    if isinstance(opened, Told):
        return opened
    built = (run.build(session, seed) for seed in range(run.seeds))
    return next((item for item in built if isinstance(item, Told)), None)


def _judged(run: Run, session: DeviceSession, result: OnDevice) -> None:
    """The problem's own inputs, a case of some families, and new data in the same memory."""
    own = [call.case for call in run.main.own]
    chosen = {call.family: call for call in reversed(run.main.families) if call.right}
    for case in [*own, *(chosen[name].case for name in FAMILIES if name in chosen)]:
        result.calls.append(run.call(session, case))
        if result.calls[-1].ended is not None:
            return
    first = run.main.steady.case
    result.calls.append(run.call(session, first))
    if result.calls[-1].ended is None:
        result.calls.append(run.call_exchanged(session, first)[0])


def _timed(
    run: Run, session: DeviceSession, reference: DeviceSession, result: OnDevice,
    tool: Assembler | None,
) -> None:  # fmt: skip
    """Fresh inputs in turns: the candidate, then the reference, on the same device."""
    if _make_ready(run, reference, "reference", result.device, tool) is not None:
        return
    cases = [call for call in run.main.own if call.shapes == run.main.own[0].shapes]
    for turn in range(ROUNDS + WARM_UP):
        number = cases[turn % len(cases)].case.number
        given, buffers = run.ask_for_data(GiveInputs(number), GivenInputs)
        question = ask.TimeOnDevice(given.tree, given.seed)
        ours, _ = session.ask(question, ask.Seconds, buffers, seconds=run.timeout_seconds)
        theirs, _ = reference.ask(question, ask.Seconds, buffers, seconds=run.timeout_seconds)
        if turn >= WARM_UP and not isinstance(ours, Told) and not isinstance(theirs, Told):
            result.ours_s.append(ours.seconds)
            result.theirs_s.append(theirs.seconds)
