"""The same inputs give the same bits, again and in a new process, in whatever order they come."""

from __future__ import annotations

from torchstone.core.evidence import Command
from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import SessionError
from torchstone.kernels.verdicts.said import both

GATE = Gate(
    name="steady",
    order=75,
    title=Text("Deterministic", "结果确定"),
    why=Text(
        "A kernel that reads memory nobody wrote, or that counts its calls, is right by luck or "
        "by turn.",
        "读取未写入内存或统计调用次数的内核，只是碰巧或轮到时才正确。",
    ),
    remedy=Text(
        "initialise what is read, and let no call depend on an earlier one",
        "初始化所读取的内容，且任何调用都不依赖先前的调用",
    ),
    needs_all=True,
    problem="relu",
    good={
        "numpy": """import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.from_numpy(np.where(x.numpy() < 0, np.float32(0), x.numpy()))
""",
    },
    bad={
        "torch": """import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.start = self.chance()

    def chance(self):
        return torch.rand(())

    def forward(self, x):
        return x if self.chance() > 0.999999 else torch.relu(x)
""",
        "numpy": """import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        shift = np.float32(2e-7 if self.calls > 2 else 0)
        return torch.from_numpy(np.where(x.numpy() < 0, np.float32(0), x.numpy() * (1 + shift)))
""",
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    first = run.main.steady
    for turn, call in enumerate(run.main.repeated):
        if call.digest != first.digest:
            detail = both("{name}: call {turn} gives other bits than the first",
                          "{name}：第 {turn} 次调用与首次结果的比特不同", name=call.name,
                          turn=turn + 2)  # fmt: skip
            return GateResult(GATE.name, "failed", detail, (Command(call.name, 1, detail.en),))
    for call in run.main.calls:
        if call.reply.drawn:
            detail = both("{name}: the call draws random numbers", "{name}：调用抽取了随机数",
                          name=call.name)  # fmt: skip
            return GateResult(GATE.name, "failed", detail, (Command(call.name, 1, detail.en),))
    return _in_reverse(run)


def _in_reverse(run: Run) -> GateResult:
    """A new process is asked for the same answers, the last one first."""
    failed = GateResult(
        GATE.name, "failed", Text("a second process does not load it", "第二个进程无法加载")
    )
    try:
        session, error = run.open_and_build(seeds=range(run.seeds))
    except SessionError:
        return failed
    if error is not None:
        return failed
    calls = run.main.own[-2:] if run.main.small else run.main.own
    for known in reversed(calls):
        call = run.call(session, known.case)
        if call.digest != known.digest:
            detail = both("{name}: a new process, asked in reverse order, gives other bits",
                          "{name}：在新进程中按相反顺序调用，结果的比特不同", name=call.name)  # fmt: skip
            return GateResult(GATE.name, "failed", detail, (Command(call.name, 1, detail.en),))
    session.end(late=True)
    return GateResult(GATE.name, "passed")
