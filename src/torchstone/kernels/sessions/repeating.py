"""Launches that are repeated elsewhere: which values a kernel wrote, and from what it made them.

A call is recorded on two inputs that differ in their numbers alone, and its launches are done again in
a process that holds the kernels and nothing else of the candidate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from torchstone.core.text import NOTHING, Text
from torchstone.kernels.messages.facts import PlannedCase, RecordedLaunch, Told
from torchstone.kernels.messages.to_candidate import CallOptions, Launched, LaunchKernel
from torchstone.kernels.messages.to_referee import (
    JudgeOrigin,
    LaunchTrees,
    MakeTwin,
    OriginFacts,
    TwinCase,
)
from torchstone.kernels.messages.trees import Tree
from torchstone.kernels.sessions.calls import Call
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import Session, SessionError
from torchstone.kernels.verdicts.said import both, error_text

_MOST_UNREAD = 32
"""Memory of one call that no launch depends on: outputs and scratch, a few for each launch."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Whether the answer is the kernels' own; a gap says why that could not be decided."""

    status: Literal["passed", "failed", "gap"]
    detail: Text = NOTHING


class UndecidedError(Exception):
    """Why launches cannot be repeated."""


@dataclass(frozen=True, slots=True)
class _Repeated:
    """The launches of one call, done again: trees whose memory lies in `buffers`."""

    launches: list[LaunchTrees]
    buffers: list[bytes]


def origin_in(run: Run, session: Session, case: PlannedCase, *, anew: bool = False) -> Origin:
    """Record the case and its twin in a session and judge them; `anew`: with a new model each time."""
    twin = run.ask_referee(MakeTwin(case.number), TwinCase).number
    calls = []
    for number in (case.number, twin):
        if number < 0:
            continue
        if anew:
            run.build(session, case.seed)
        options = CallOptions(record_launches=True)
        calls.append(run.call(session, replace(case, number=number), options))
        if calls[-1].ended is not None or calls[-1].error is not None or not calls[-1].right:
            return _undecided("the recorded call did not end well")
    try:
        return _judged(run, calls)
    except UndecidedError as error:
        return _undecided(str(error))
    except SessionError as error:
        return _undecided(error.ended.reason)


def _undecided(why: str) -> Origin:
    said = both("could not be decided outside of the candidate's process: {why}",
                "无法在候选进程之外判定：{why}", why=why)  # fmt: skip
    return Origin("gap", said)


def _judged(run: Run, calls: list[Call]) -> Origin:
    for call in calls:
        if call.reply.trouble:
            raise UndecidedError(call.reply.trouble)
    recorded = [call.reply.recorded for call in calls]
    if not all(recorded):
        return Origin("failed", Text("the answer is right although no kernel was launched",
                                     "没有启动任何内核，结果却正确"))  # fmt: skip
    if len({str([_form(item) for item in one]) for one in recorded}) > 1:
        return Origin("failed", Text("what is launched depends on the values of the inputs",
                                     "启动了什么取决于输入的数值"))  # fmt: skip
    session, answer = run.open_kernels()
    if isinstance(answer, Told):
        raise UndecidedError("the kernels do not load on their own")
    repeated = [_launched_again(run, session, call) for call in calls]
    ignored: list[tuple[int, ...]] = []
    facts = _asked(run, calls, repeated, ignored)
    while facts.place >= 0 and len(calls) > 1 and len(ignored) < _MOST_UNREAD:
        if _matters(run, session, calls, repeated, facts):
            break
        ignored.append((facts.launch, facts.place))
        facts = _asked(run, calls, repeated, ignored)
    session.end(late=True)
    return _said(facts, recorded[0])


def _form(launch: RecordedLaunch) -> tuple[object, ...]:
    """A launch without the numbers that it was given."""
    arrays = [replace(item, memory=0) for item in launch.given if item.memory >= 0]
    return launch.kernel, len(launch.given), arrays


def _memory_of(call: Call) -> list[bytes]:
    return call.records[call.reply.recorded_from - len(call.answer_data) :]


def _launched_again(run: Run, session: Session, call: Call) -> _Repeated:
    """Every launch with its arguments before and after."""
    memory = _memory_of(call)
    launches: list[LaunchTrees] = []
    buffers: list[bytes] = list(memory)
    for item in call.reply.recorded:
        done, data = _ask(run, session, item, memory)
        moved = {number: len(buffers) + i for i, number in enumerate(done.memory)}
        buffers += data[: len(moved)]
        arrays = [tree for tree in item.given if tree.memory >= 0]
        after = [replace(tree, memory=moved[tree.memory]) for tree in arrays]
        returned = _shifted(done.returned, len(buffers))
        buffers += data[len(moved) :]
        launches.append(LaunchTrees(item.given, [*after, returned]))
    return _Repeated(launches, buffers)


def _ask(
    run: Run, session: Session, launch: RecordedLaunch, memory: list[bytes]
) -> tuple[Launched, list[bytes]]:
    done, data = session.ask(LaunchKernel(launch), Launched, memory, seconds=run.timeout_seconds)
    if isinstance(done, Told):
        said = error_text(done)
        raise UndecidedError(f"{launch.kernel} cannot be launched on its own: {said}")
    return done, data


def _shifted(tree: Tree, start: int) -> Tree:
    """A value whose memory or buffers stand later in the message."""
    if tree.memory >= 0:
        return replace(tree, memory=tree.memory + start)
    if tree.is_array:
        return replace(tree, buffer=tree.buffer + start)
    return replace(tree, items=[_shifted(item, start) for item in tree.items])


def _asked(
    run: Run, calls: list[Call], repeated: list[_Repeated], ignored: list[tuple[int, ...]]
) -> OriginFacts:
    """What the referee says of the launches of a call, and of those of its twin."""
    first = calls[0]
    assert first.reply.answer is not None
    buffers = list(repeated[0].buffers)

    def later(trees: list[Tree]) -> list[Tree]:
        return [_shifted(tree, len(repeated[0].buffers)) for tree in trees]

    twins = [
        LaunchTrees(later(launch.before), later(launch.after))
        for item in repeated[1:]
        for launch in item.launches
    ]
    for item in repeated[1:]:
        buffers += item.buffers
    question = JudgeOrigin(
        first.case.number, calls[-1].case.number, repeated[0].launches, twins,
        first.reply.answer.leaves, len(buffers), ignored,
    )  # fmt: skip
    return run.ask_referee(question, OriginFacts, [*buffers, *first.answer_data])


def _matters(
    run: Run, session: Session, calls: list[Call], repeated: list[_Repeated], facts: OriginFacts
) -> bool:
    """Whether a launch answers otherwise when one array holds what it holds in the twin.

    New memory holds what somebody left there: a kernel that only writes it does not depend on it.
    """
    number, place = facts.launch, facts.place
    mine, other = (item.launches[number].before[place].memory for item in repeated)
    memory = _memory_of(calls[0])
    filled = list(memory)
    filled[mine] = _memory_of(calls[1])[other]
    launch = calls[0].reply.recorded[number]
    done, before = _ask(run, session, launch, memory)
    _, after = _ask(run, session, launch, filled)
    at = done.memory.index(mine)
    rest = list(zip(before, after, strict=True))
    one, two = rest.pop(at)
    return any(a != b for a, b in rest) or _written_otherwise(one, two, memory[mine], filled[mine])


def _written_otherwise(one: bytes, two: bytes, before: bytes, filled: bytes) -> bool:
    """Whether two launches wrote different bytes; those that neither wrote are as they were."""
    return one != two and any(
        a != b and not (a == old and b == new)
        for a, b, old, new in zip(one, two, before, filled, strict=True)
    )


def _said(facts: OriginFacts, recorded: list[RecordedLaunch]) -> Origin:
    if facts.launch >= 0:
        kernel = recorded[facts.launch].kernel
        how = (
            "values that follow the inputs and are not moved from them",
            "随输入变化、却不是从输入搬来的值",
        )
        if not facts.computed:
            how = ("values that are neither inputs nor weights nor written by a kernel before it",
                   "既非输入、权重，也非之前内核写出的值")  # fmt: skip
        what = both("launch {n} ({kernel}) is given {count} " + how[0],
                    "第 {n} 次启动（{kernel}）收到 {count} 个" + how[1],
                    n=facts.launch + 1, kernel=kernel, count=facts.values)  # fmt: skip
        return Origin("failed", what)
    if facts.output >= 0:
        what = both("output {n} holds {count} values that no kernel wrote",
                    "输出 {n} 含有 {count} 个并非由内核写出的值",
                    n=facts.output, count=facts.values)  # fmt: skip
        return Origin("failed", what)
    return Origin("passed")
