"""The Verifier: a candidate goes through the gates, cheapest first, and comes out with a verdict."""

from __future__ import annotations

import resource
import time
from pathlib import Path

from torchstone._version import __version__
from torchstone.core.errors import UsageError
from torchstone.core.limits import check_seconds
from torchstone.core.measure import Measure
from torchstone.core.options import unknown
from torchstone.core.pictures import Table
from torchstone.core.text import Text
from torchstone.kernels.candidate import Candidate, known_implementation, load_candidate
from torchstone.kernels.gate import Gate, all_gates
from torchstone.kernels.gate_result import OWN_SIZE, GateResult
from torchstone.kernels.messages.facts import WRONG
from torchstone.kernels.problem import Problem, load_problem
from torchstone.kernels.sessions.bad_problem import LargeProblemError
from torchstone.kernels.sessions.calls import Call
from torchstone.kernels.sessions.confinement import walls_of
from torchstone.kernels.sessions.limits import MORE_MEMORY, LimitError
from torchstone.kernels.sessions.memory import memory_budget
from torchstone.kernels.sessions.processes import Progress
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import Workshop, WorkshopError, workshop_for
from torchstone.kernels.verdicts.said import COMPARED, named, place, told_apart
from torchstone.kernels.verdicts.verdict import Outcome, Verdict, WrongElement

TIMEOUT_SECONDS = 60.0
SEEDS = 5
ANY_OR_OWN = ("any", "own")
_PACKAGES = {"triton": "triton", "numba": "numba"}


def verify(
    problem: Problem | str | Path,
    candidate: Candidate | str | Path,
    impl: str = "",
    *,
    seeds: int = SEEDS,
    timeout_seconds: float = TIMEOUT_SECONDS,
    memory: str = "",
    without_words: bool = False,
    layouts: str = "any",
    sizes: str = "any",
    progress: Progress | None = None,
    workshop: Workshop | None = None,
) -> Verdict:
    """Judge a candidate: the same inputs give the same verdict and the same error log.

    With `without_words` no message text of a candidate's exception is part of the verdict. With `layouts="own"`
    inputs are contiguous wherever the problem's are, with `sizes="own"` as large as the problem's. `problem` is a Problem, a path or the name of a shipped one; `candidate` a Candidate, or a path
    with `impl`. `memory` is how much may be used, such as "12G"; half of what is free by default. A
    workshop that is handed in saves the start of a process when many are judged.
    """
    problem = problem if isinstance(problem, Problem) else load_problem(str(problem))
    if not isinstance(candidate, Candidate):
        candidate = load_candidate(candidate, known_implementation(impl))
    if seeds < 2:
        raise UsageError("kernel verify: --seeds", str(seeds), Text("2 or more", "2 或更多"),
                         Text("the default is 5", "默认为 5"))  # fmt: skip
    for flag, given in (("--layouts", layouts), ("--sizes", sizes)):
        if given not in ANY_OR_OWN:
            raise unknown(f"kernel verify: {flag}", given, ANY_OR_OWN)
    check_seconds("kernel verify: --timeout", timeout_seconds, TIMEOUT_SECONDS)
    preload = preload_for(candidate.implementation, problem.framework)
    with workshop_for(preload, workshop) as ready:
        before = _used(ready)
        run = Run(problem, candidate, ready, seeds=seeds, timeout_seconds=timeout_seconds,
                  memory_bytes=memory_budget(memory), progress=progress,
                  without_words=without_words, own_layouts=layouts == "own",
                  own_sizes=sizes == "own")  # fmt: skip
        crash = ""
        try:
            results = judge(run)
        except WorkshopError as error:
            results, crash = (), str(error)[:300]
        finally:
            run.close()
        measures = (*_measures(run), _cpu(_used(ready) - before))
        environment = _environment(run)
    outcome = "none" if crash else outcome_of(results)
    return Verdict(
        problem, candidate, results, outcome, measures, environment, crash, _first_wrong(run)
    )


def outcome_of(results: tuple[GateResult, ...]) -> Outcome:
    """One failure rejects; without one, what was not run decides."""
    if any(item.status == "failed" for item in results):
        return "rejected"
    if any(_blocks(item) for item in results):
        return "none"
    own = next((item for item in results if item.gate == OWN_SIZE), None)
    return "accepted" if own is None or own.status == "passed" else "smaller"


def preload_for(implementation: str, framework: str = "torch") -> tuple[str, ...]:
    """What a workshop for this implementation loads before it forks."""
    extra = _PACKAGES.get(implementation)
    own = ["mindspore"] if framework == "mindspore" else []
    return ("numpy", "torch", *([extra] if extra else []), *own)


def judge(run: Run) -> tuple[GateResult, ...]:
    """All gates in their order; what a failure makes pointless is skipped, and said."""
    results: list[GateResult] = []
    stopped = ""
    for gate in all_gates():
        if run.candidate.implementation not in gate.implementations:
            continue
        failed = [item.gate for item in results if _counts(item)]
        if stopped or (gate.needs_all and failed):
            results.append(_skipped(gate, stopped or failed[0]))
            continue
        try:
            result = gate.run(run)
        except LimitError as error:
            result = GateResult(gate.name, "gap", error.what, close=MORE_MEMORY, limit=True)
        except LargeProblemError as error:
            ran = any(item.gate == OWN_SIZE and item.status == "passed" for item in results)
            result = GateResult(gate.name, "gap", error.what, close=MORE_MEMORY, limit=not ran)
        results.append(result)
        if result.limit or (gate.stops and result.status in ("failed", "gap")):
            stopped = gate.name
    return tuple(results)


def _counts(result: GateResult) -> bool:
    return result.status == "failed" or _blocks(result)


def _blocks(result: GateResult) -> bool:
    """A limit, or a gap in a gate that decides, means that the candidate was not verified."""
    stops = any(gate.stops for gate in all_gates() if gate.name == result.gate)
    return result.status == "gap" and (result.limit or stops)


def _skipped(gate: Gate, because: str) -> GateResult:
    return GateResult(
        gate.name, "skipped", Text(f"not reached because of {because}", f"因 {because} 而未执行")
    )


def _measures(run: Run) -> tuple[Measure, ...]:
    if run.shown is None:
        return ()
    calls = run.shown.calls
    return (
        Measure("cases", float(len(calls)), "", Text("counted", "统计得出"),
                Text("cases run", "运行的用例"), evidence=(_table(calls),), tool="kernel"),
    )  # fmt: skip


def _first_wrong(run: Run) -> WrongElement | None:
    """The first element of the first case that is not what the reference gives."""
    for call in run.shown.calls if run.shown else ():
        for kind in WRONG:
            for fact in call.wrong(kind):
                got, want = told_apart(float(fact.got), float(fact.want))
                return WrongElement(
                    named(call, fact), place(fact.index), want, got, fact.count, fact.of,
                    fact.here, fact.allowed,
                )  # fmt: skip
    return None


def _table(calls: list[Call]) -> Table:
    """By family: how many cases, the largest error, and what is allowed."""
    rows = []
    for family in dict.fromkeys(call.family for call in calls):
        mine = [call for call in calls if call.family == family]
        units = [item.units for call in mine for item in call.facts.outputs]
        allowed = [n for call in mine if (n := call.facts.allowed) is not None]
        rows.append((
            family, len(mine), sum(call.right for call in mine),
            sum(call.refused for call in mine), max(units, default=None),
            max(allowed, default=None),
        ))  # fmt: skip
    columns = (
        Text("family", "类别"), Text("cases", "用例"), Text("right", "正确"),
        Text("refused", "拒绝"), Text("largest error, at most, roundings", "最大误差上限（舍入的倍数）"),
        Text("tolerance, roundings", "容差（舍入的倍数）"),
    )  # fmt: skip
    return Table(Text("Families of inputs", "输入类别"), columns, tuple(rows), COMPARED)


def _used(workshop: Workshop) -> float:
    """CPU seconds so far: of this process, of the workshop, and of compilers that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return workshop.spent.cpu_seconds + ended.ru_utime + ended.ru_stime + time.process_time()


def _cpu(seconds: float) -> Measure:
    return Measure(
        "cpu_seconds", seconds, "s",
        Text("of all processes, with loading torch when this verdict loaded it",
             "所有进程的 CPU 时间；若本次加载了 torch 则包含在内"),
        Text("CPU time", "CPU 时间"), tool="kernel",
    )  # fmt: skip


def _environment(run: Run) -> dict[str, str]:
    versions = {name: value for name, value in run.workshop.loaded.items() if value[:1] != "!"}
    return {
        "torchstone": __version__,
        **versions,
        **walls_of(run.walls, run.workshop.network),
        "paths": run.workshop.root or "none",
    }
