"""Time and work are judged outside of the candidate's process: its own code cannot change them.

The candidates here would not pass the static policy; the gates are asked without it.
"""

from __future__ import annotations

import os

import pytest

from torchstone.core.pictures import Strip
from torchstone.kernels import load_problem
from torchstone.kernels.candidate import Candidate, Implementation
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gates import origin, timing
from torchstone.kernels.messages.to_candidate import Mode
from torchstone.kernels.messages.to_referee import Planned, PlanOwnSmall, Speed
from torchstone.kernels.policy.kernel_bodies import kernels_alone
from torchstone.kernels.sessions.calls import Main
from torchstone.kernels.sessions.full_size_run import prepare_question
from torchstone.kernels.sessions.question import Question
from torchstone.kernels.sessions.repeating import origin_in
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.stopwatch import (
    Stopwatch,
    Turn,
    UntimedError,
    on_one_processor,
    time_in_turns,
)
from torchstone.kernels.sessions.workshop import Workshop
from torchstone.kernels.verdicts.verdict import Verdict

SLOW_WITH_ANOTHER_CLOCK = """import time

import torch

time.perf_counter = time.monotonic = time.process_time = lambda: 0.0


class ModelNew(torch.nn.Module):
    def forward(self, x):
        for _ in range(1_000_000):
            pass
        return torch.relu(x)
"""
FROM_MEMORY = """import torch

_answers = {}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.shape not in _answers:
            _answers[x.shape] = torch.relu(x)
        return _answers[x.shape]
"""
NUMBA = """import numba
import torch


@numba.njit
def gelu(x, y):
    for i in range(x.size):
        y[i] = x[i]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        {body}
"""
C = """import torch
from torchstone_kernel import library

C_SOURCE = r'''
void copy(const float *x, float *y, long n) {{ for (long i = 0; i < n; i++) y[i] = x[i]; }}
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        {body}
"""
COPIED = "h = torch.nn.functional.gelu(x).contiguous(); y = torch.empty_like(h); {launch}; return y"
FOR_SHOW = (
    "h = x.contiguous(); y = torch.empty_like(h); {launch}; return torch.nn.functional.gelu(x)"
)


def opened(source: str, implementation: Implementation, problem: str, workshop: Workshop) -> Run:
    candidate = Candidate(source, implementation)
    return Run(load_problem(problem), candidate, workshop, seeds=2, timeout_seconds=60)


def test_a_changed_clock_changes_no_time(workshop: Workshop) -> None:
    run = opened(SLOW_WITH_ANOTHER_CLOCK, "torch", "relu", workshop)
    try:
        session, _ = run.open_and_build(Mode(plain=True))
        question = prepare_question(run)
        assert isinstance(question, Question)
        turns = time_in_turns(Stopwatch(run, session, question), rounds=3)
    finally:
        run.close()
    # a million turns of a loop take more than a millisecond on every machine
    assert all(turn.candidate_seconds > 0.001 for turn in turns)


def test_timed_answers_are_judged(workshop: Workshop) -> None:
    run = opened(FROM_MEMORY, "torch", "relu", workshop)
    try:
        session, _ = run.open_and_build(Mode(plain=True))
        question = prepare_question(run)
        assert isinstance(question, Question)
        with pytest.raises(UntimedError, match="answers fresh inputs wrongly"):
            time_in_turns(Stopwatch(run, session, question), rounds=3)
        assert timing.GATE.run(run).status == "failed"
    finally:
        run.close()


def judged(
    source: str, implementation: Implementation, workshop: Workshop, problem: str = "gelu"
) -> GateResult:
    """The gate of origin on the problem's own inputs, cut to a small size."""
    run = opened(source, implementation, problem, workshop)
    try:
        assert run.facts.cases
        case = run.ask_referee(PlanOwnSmall(1), Planned).cases[0]
        session, _ = run.open_and_build(seeds=(case.seed,))
        run.shown = Main(own=[run.call(session, case)])
        assert run.main.own[0].right
        return origin.GATE.run(run)
    finally:
        run.close()


@pytest.mark.parametrize(
    ("form", "implementation", "launch"),
    [(NUMBA, "numba", "gelu(h.view(-1).numpy(), y.view(-1).numpy())"),
     (C, "c", "library.copy(h, y, h.numel())")],
)  # fmt: skip
def test_a_kernel_that_copies_what_torch_computed_is_refused(
    form: str, implementation: Implementation, launch: str, workshop: Workshop
) -> None:
    given = judged(form.format(body=COPIED.format(launch=launch)), implementation, workshop)
    assert given.status == "failed"
    assert "neither inputs nor weights" in given.detail.en
    shown = judged(form.format(body=FOR_SHOW.format(launch=launch)), implementation, workshop)
    assert shown.status == "failed"
    assert "values that no kernel wrote" in shown.detail.en


BITS = """import numba
import numpy as np
import torch


@numba.njit
def take(x, y):
    f = x.view(np.float32)
    for i in range(f.size):
        y[i] = f[i]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        h = torch.nn.functional.gelu(x).contiguous()
        y = torch.empty_like(h)
        take(h.view(torch.int32).view(-1).numpy(), y.view(-1).numpy())
        return y
"""


def test_what_is_computed_elsewhere_does_not_pass_as_whole_numbers(workshop: Workshop) -> None:
    found = judged(BITS, "numba", workshop)
    assert found.status == "failed"
    assert "not moved from them" in found.detail.en


@pytest.mark.parametrize(
    "host",
    [
        "[max(v, 0.0) for v in x.reshape(-1).tolist()]",
        "x.clone().apply_(lambda v: max(v, 0.0)).reshape(-1)",
        "np.maximum(np.asarray(x.numpy()), 0).reshape(-1)",
        "bytes_of(x)",
    ],
)
def test_moved_values_that_the_host_chose_are_seen(host: str, workshop: Workshop) -> None:
    """For a problem that only moves values every value is one of an input, whoever chose it."""
    source = f"""import numba
import numpy as np
import torch


@numba.njit
def copy(x, y):
    for i in range(x.size):
        y[i] = x[i]


def bytes_of(x):
    flat = np.ndarray(x.numel(), np.float32, bytes(x.contiguous().numpy()))
    return [max(v, 0.0) for v in flat]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape)
        copy(np.asarray({host}, dtype=np.float32), y.view(-1).numpy())
        return y
"""
    found = judged(source, "numba", workshop, "relu")
    assert found.status == "failed"
    assert "not moved from them" in found.detail.en


UNLIKE = """import numpy as np
import torch
from torchstone_kernel import library

C_SOURCE = r'''
void relu(const float *x, float *y, long n) { for (long i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i]; }
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        %s
        y = torch.empty_like(x)
        library.relu(x, y, x.numel())
        return y
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("if type(x.numpy()) is np.ndarray: return torch.relu(x)", "no kernel was launched"),
        ("if x.storage_offset() == 0: return torch.relu(x)", "no kernel was launched"),
        ("if x.storage_offset() == 0: x = torch.relu(x)", "not moved from them"),
        ("", ""),
    ],
)
def test_who_works_is_asked_in_the_process_that_is_timed(
    line: str, said: str, workshop: Workshop
) -> None:
    """Where nothing is watched, another computes: answers are right, the time is not the kernel's."""
    run = opened(UNLIKE % line, "c", "relu", workshop)
    try:
        session, _ = run.open_and_build(seeds=(0,))
        run.shown = Main(own=[run.call(session, run.facts.cases[0])])
        found = timing.GATE.run(run)
    finally:
        run.close()
    assert found.status == ("failed" if said else "passed")
    assert said in found.detail.en


def test_memory_that_runs_out_while_it_is_timed_is_no_fault(workshop: Workshop) -> None:
    source = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        raise MemoryError\n"
    run = opened(source, "torch", "relu", workshop)
    try:
        found = timing.GATE.run(run)
    finally:
        run.close()
    assert found.status == "skipped"
    assert "--memory" in found.detail.en


def test_memory_that_a_kernel_only_writes_may_hold_anything(workshop: Workshop) -> None:
    """A scratch row is kept from call to call, with what the last one left in it."""
    source = UNLIKE.replace("float *y, long n)", "float *y, float *s, long n)")
    source = source.replace(
        "y[i] = x[i] < 0 ? 0 : x[i];", "{ s[i] = x[i]; y[i] = s[i] < 0 ? 0 : s[i]; }"
    )
    source = source.replace("library.relu(x, y, x", "library.relu(x, y, self.kept, x")
    run = opened(source % "self.kept = self.kept if hasattr(self, 'kept') else x.clone()", "c",
                 "relu", workshop)  # fmt: skip
    try:
        session, _ = run.open_and_build(Mode(plain=True))
        found = origin_in(run, session, run.facts.cases[0])
    finally:
        run.close()
    assert found.status == "passed", found.detail.en


def test_a_counter_that_was_changed_hides_nothing(workshop: Workshop) -> None:
    """The candidate silences the operators' counter of its own process."""
    silenced = NUMBA.replace(
        "@numba.njit",
        "import gc\n\nfor item in gc.get_objects():\n    if isinstance(item, type) and item.__name__ == "
        "'Operators':\n        item.__torch_dispatch__ = "
        "lambda self, f, types, args=(), kwargs=None: f(*args, **(kwargs or {{}}))\n\n\n@numba.njit",
    )
    launch = "gelu(h.view(-1).numpy(), y.view(-1).numpy())"
    assert (
        judged(silenced.format(body=COPIED.format(launch=launch)), "numba", workshop).status
        == "failed"
    )


def test_kernels_that_cannot_be_launched_alone_are_said_to_be_undecided(workshop: Workshop) -> None:
    source = """import numba
import torch


def made():
    @numba.njit
    def gelu(x, y):
        for i in range(x.size):
            v = x[i]
            y[i] = 0.5 * v * (1.0 + numba.float32(erf(v * 0.7071067811865476)))

    return gelu


from math import erf

KERNELS = {0: made()}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        h = x.contiguous()
        y = torch.empty_like(h)
        KERNELS[0](h.view(-1).numpy(), y.view(-1).numpy())
        return y
"""
    found = judged(source, "numba", workshop)
    assert found.status == "gap"
    assert "could not be decided outside" in found.detail.en


def test_only_kernels_are_left_of_a_source() -> None:
    source = """import math
import torch
import triton
import triton.language as tl

SIZE = 128
print("runs")
torch.relu = abs


@triton.jit
def helper(x):
    return x * 2


found = {"warps": 4}
WARPS = found["warps"]


@triton.autotune(configs=list(filter(with_default, [found])), key=["n"])
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    tl.store(y, helper(tl.load(x)))


def with_default(x=print("runs")):
    return x


class ModelNew(torch.nn.Module):
    pass
"""
    alone = kernels_alone(source, "triton")
    for name in ("SIZE = 128", "def helper", "def kernel", "import torch"):
        assert name in alone
    for name in ("print", "relu", "ModelNew", "with_default", "WARPS", "autotune"):
        assert name not in alone


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this system")
def test_what_is_timed_has_one_processor() -> None:
    before = os.sched_getaffinity(0)
    with on_one_processor(os.getpid()):
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


def test_a_small_answer_is_no_evidence_of_an_impossible_time() -> None:
    class Asked:
        def ask_referee(self, question: object, kind: type[object]) -> Speed:
            return Speed(1e10)

    quick = [Turn(-5e-6, 2e-6, 4e-6) for _ in range(9)]
    assert timing._told(Asked(), quick, 840).status == "passed"  # type: ignore[arg-type]
    large = [Turn(1e-6, 2e-2, 4e-6) for _ in range(9)]
    assert timing._told(Asked(), large, 64 << 20).status == "failed"  # type: ignore[arg-type]


class Written:
    """A referee that writes fast."""

    def ask_referee(self, question: object, kind: type[object]) -> Speed:
        return Speed(1e10)


def _verdict_of(found: GateResult) -> Verdict:
    problem = load_problem("softmax")
    return Verdict(problem, Candidate("", "torch"), (found,), outcome="accepted")


@pytest.mark.parametrize(
    ("turns", "why"),
    [
        ([Turn(9e-6 + i * 1e-7, 7e-6 + i * 1e-7, 40e-6) for i in range(9)], "exchange"),
        ([Turn(58e-6, 58e-6 + i * 20e-6, 10e-6) for i in range(-4, 5)], "spread"),
        ([Turn(9e-7, 9e-6, 4e-6) for _ in range(9)], "exchange"),
        ([Turn(2e-2, 9e-6, 4e-5) for _ in range(9)], "exchange"),
    ],
)
def test_what_is_too_short_to_time_has_no_ratio(turns: list[Turn], why: str) -> None:
    report = _verdict_of(timing._told(Written(), turns, 840)).report()  # type: ignore[arg-type]
    answer = report.answer
    assert answer is not None
    assert answer.headline.en.endswith("too short to time")
    assert answer.headline.zh.endswith("时间过短，无法计时")
    tile = answer.tiles[-1]
    assert getattr(tile.value, "en", "").endswith("too short to time")
    assert why in getattr(tile.note, "en", "")
    assert "计时：" not in getattr(tile.note, "zh", "")
    assert "good" not in [item.state for item in answer.tiles]
    assert "timing_speed_up" not in [item.name for item in report.measures]
    (strip,) = answer.pictures
    assert isinstance(strip, Strip)
    assert [item.state for item in strip.checks] == ["plain"]


def test_a_speed_up_stands_in_the_headline() -> None:
    turns = [Turn(2e-3, 4e-3, 1e-4) for _ in range(9)]
    whole = _verdict_of(timing._told(Written(), turns, 840)).report()  # type: ignore[arg-type]
    assert whole.answer is not None
    assert whole.answer.headline.en.endswith("2.00 x the reference's speed")
    assert whole.answer.tiles[-1].state == "good"
