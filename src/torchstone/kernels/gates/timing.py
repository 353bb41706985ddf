"""How fast it is, where that means something: beside the reference, on fresh inputs, in turns."""

from __future__ import annotations

import statistics

from torchstone.core.evidence import Number
from torchstone.core.text import NOTHING, Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.run import Run
from torchstone.kernels.verdict import GateResult
from torchstone.kernels.workshop import SessionError

ROUNDS = 9
EXCESSIVE = 10.0
_HOW = Text(
    "median of 9 turns on fresh inputs, one thread each, in turn with the reference",
    "9 轮的中位数，每轮使用新输入，各用一个线程，与参考交替运行",
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
        "torch": """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.clamp(x, min=0)
""",
    },
    bad={},
)


@GATE.check
def check(run: Run) -> GateResult:
    if run.interpreted:
        because = Text("times of an interpreter or a simulator say nothing about a device",
                       "解释器或模拟器的时间不能说明设备上的速度")  # fmt: skip
        return GateResult(GATE.name, "skipped", because)
    cases = run.facts["cases"]
    ours: list[float] = []
    theirs: list[float] = []
    try:
        session, answer = run.open({"plain": True})
        for seed in range(run.seeds):
            if "error" not in answer:
                answer = run.build(session, seed)
        if "error" in answer:
            return GateResult(GATE.name, "skipped", Text("it does not load again", "无法再次加载"))
        for turn in range(ROUNDS + 2):
            case = cases[turn % len(cases)]
            tree, buffers = run.ask_referee("inputs", number=case["number"])
            header = {"do": "time", "tree": tree["tree"], "seed": tree["seed"]}
            told, _ = session.ask(header, buffers, seconds=run.timeout_seconds)
            reference, _ = run.ask_referee("time", number=case["number"])
            if turn >= 2 and "seconds" in told:  # the first turns warm caches up
                ours.append(float(told["seconds"]))
                theirs.append(float(reference["seconds"]))
        session.end(late=True)
    except SessionError:
        return GateResult(
            GATE.name, "skipped", Text("it ended while it was timed", "计时时进程结束")
        )
    if not ours:
        return GateResult(GATE.name, "skipped", Text("no turn could be timed", "没有可计时的轮次"))
    return _told(ours, theirs)


def _told(ours: list[float], theirs: list[float]) -> GateResult:
    ratios = sorted(b / max(a, 1e-9) for a, b in zip(ours, theirs, strict=True))
    speed = statistics.median(ratios)
    spread = ratios[len(ratios) * 3 // 4] - ratios[len(ratios) // 4]
    numbers = (
        Number(Text("candidate", "候选"), statistics.median(ours), "s", _HOW, _spread(ours)),
        Number(Text("reference", "参考"), statistics.median(theirs), "s", _HOW, _spread(theirs)),
        Number(Text("speed-up", "加速比"), speed, "×", _HOW, spread),
    )
    detail = NOTHING
    if speed > EXCESSIVE:
        detail = Text("so fast that it is a reason to look", "快到值得检查")
    return GateResult(GATE.name, "passed", detail, numbers)


def _spread(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) * 3 // 4] - ordered[len(ordered) // 4]
