"""How fast it is, where that means something: beside the reference, on fresh inputs, in turns."""

from __future__ import annotations

from torchstone.core.evidence import Number
from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import torch_sample
from torchstone.kernels.messages.to_candidate import Mode
from torchstone.kernels.messages.to_referee import FindModes, MeasureSpeed, Modes, Speed
from torchstone.kernels.sessions.bad_problem import LargeProblemError
from torchstone.kernels.sessions.full_size_run import prepare_question
from torchstone.kernels.sessions.limits import LimitError
from torchstone.kernels.sessions.repeating import Origin, origin_in
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.stopwatch import (
    Stopwatch,
    Turn,
    UntimedError,
    keep_on_one_processor,
    on_one_processor,
    time_in_turns,
)
from torchstone.kernels.sessions.workshop import Session, SessionError
from torchstone.kernels.verdicts.said import (
    REFERENCE_SHORT,
    TOO_SHORT,
    UNSTEADY,
    joined,
)

ROUNDS = 9
EXCESSIVE = 10.0
_CLOCK_SECONDS = 1e-6
"""Below a microsecond the clock and the socket say nothing."""
_SLACK = 4
"""How many times faster than the measured rate of writing a kernel may seem: caches, turbo, noise."""
_APART = 0.25
"""What a call takes at least, as a share of the messages around it, to be told apart from them."""
_HOW = Text(
    "CPU time, lower quartile of up to 9 turns on fresh inputs of the problem's own sizes, taken outside the candidate's "
    "process, one thread each, in turn with the reference; what handing inputs and answers over takes is taken off",
    "CPU 时间，最多 9 轮的下四分位数，每轮使用问题自身尺寸的新输入，在候选进程之外计时，各用一个线程，与参考交替运行；"
    "已扣除交接输入与结果的时间",
)

GATE = Gate(
    name="timing",
    order=99,
    title=Text("Time", "时间"),
    why=Text(
        "A speed-up is a claim; an excessive one is a reason to look for what was left out.",
        "加速比是一种主张；过大的加速比是检查漏算的理由。",
    ),
    implementations=("torch", "numpy", "numba", "c"),
    needs_all=True,
    problem="relu",
    good={
        "torch": torch_sample("""return torch.clamp(x, min=0)
"""),
    },
    bad={},
)


_NO_MEMORY = Text(
    "there is not enough memory to time it (--memory)", "内存不足，无法计时（--memory）"
)


@GATE.check
def check(run: Run) -> GateResult:
    if run.interpreted:
        because = Text("times of an interpreter or a simulator say nothing about a device",
                       "解释器或模拟器的时间不能说明设备上的速度")  # fmt: skip
        return GateResult(GATE.name, "skipped", because)
    try:
        session, error = run.open_and_build(Mode(plain=True), memory_bytes=run.memory_bytes)
        keep_on_one_processor(session.pid)
        if error is not None:
            return GateResult(GATE.name, "skipped", Text("it does not load again", "无法再次加载"))
        found = Origin("passed")

        def ask_who_works() -> None:
            nonlocal found
            found = _worked(run, session)

        question = prepare_question(run)
        if isinstance(question, Text):
            return GateResult(GATE.name, "skipped", question)
        with on_one_processor(run.referee.pid):
            watch = Stopwatch(run, session, question)
            turns = time_in_turns(watch, ROUNDS, ask_who_works)
        session.end(late=True)
    except SessionError:
        return GateResult(
            GATE.name, "skipped", Text("it ended while it was timed", "计时时进程结束")
        )
    except (LargeProblemError, LimitError):
        return GateResult(GATE.name, "skipped", _NO_MEMORY)
    except UntimedError as refused:
        return GateResult(GATE.name, "failed", refused.what)
    if found.status == "failed":
        detail = Text(f"while it is timed, others do the work: {found.detail.en}",
                      f"计时期间由他者完成计算：{found.detail.zh}")  # fmt: skip
        return GateResult(GATE.name, "failed", detail)
    return _told(run, turns, question.answer_bytes)


def _worked(run: Run, session: Session) -> Origin:
    """Who does the work in the process that is timed, where nothing else is watched."""
    first = run.main.own[0]
    source = run.candidate.source
    # with a target numba makes ufuncs of numpy's own, which can be followed in watched arrays only
    unseen = "vectorize" in source and "target" in source
    if not run.has_kernels or not first.right or first.case.seed != 0 or unseen:
        return Origin("gap")
    changes = run.ask_referee(FindModes(), Modes).changed
    return origin_in(run, session, first.case, anew=bool(changes))


def _told(run: Run, turns: list[Turn], size: int) -> GateResult:
    ours = [turn.candidate_seconds for turn in turns]
    theirs = [turn.reference_seconds for turn in turns]
    exchange = [turn.exchange_seconds for turn in turns]
    own, other = _typical(ours), _typical(theirs)
    rate = run.ask_referee(MeasureSpeed(size), Speed).bytes_per_second
    writing = size / rate / _SLACK
    least = max(_spread(exchange), _spread(ours), _CLOCK_SECONDS)
    # what takes less than the noise cannot be told from nothing: a small answer is no evidence
    if least < writing and own + 3 * least < writing:
        detail = Text("faster than this machine can write the answer: the time is impossible",
                      "比本机写出结果的速度还快：该时间不可能成立")  # fmt: skip
        return GateResult(GATE.name, "failed", detail)
    # processes differ in what the same exchange takes: a part of that is no time of a call
    floor = max(_spread(exchange), _CLOCK_SECONDS, _typical(exchange) * _APART)
    numbers = [
        Number(name, _typical(taken), "s", _HOW, _spread(taken))
        for name, taken in ((Text("candidate", "候选"), ours), (Text("reference", "参考"), theirs))
        if _typical(taken) >= floor and not _unsteady(taken)
    ]
    speed = max(other, 0.0) / max(own, floor)
    notes = []
    if min(own, other) < floor:
        notes.append(TOO_SHORT if own < floor else REFERENCE_SHORT)
    elif _unsteady(ours) or _unsteady(theirs):
        notes.append(UNSTEADY)
    else:
        spread = speed * (_spread(ours) / own + _spread(theirs) / other)
        numbers.append(Number(Text("speed-up", "加速比"), speed, "×", _HOW, spread))
    if speed > EXCESSIVE:
        notes.append(Text("so fast that it is a reason to look", "快到值得检查"))
    return GateResult(GATE.name, "passed", joined(notes), tuple(numbers))


def _unsteady(values: list[float]) -> bool:
    """The spread is as large as the value."""
    return _spread(values) >= _typical(values)


def _typical(values: list[float]) -> float:
    """The lower quartile: what else runs on a machine makes a call longer, and never shorter."""
    return sorted(values)[len(values) // 4]


def _spread(values: list[float]) -> float:
    """From the least to the median."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2] - ordered[0]
