"""Every value of the answer was written by a kernel: shown by launching the kernels again elsewhere.

What the candidate's process counts, its own code could have changed. So the launches of one call are
recorded and repeated in a process that holds the kernels and nothing else of the candidate. The answer
must consist of values that they wrote there, and they must have been given the problem's own values.
"""

from __future__ import annotations

from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.messages.facts import PlannedCase
from torchstone.kernels.messages.to_candidate import Mode
from torchstone.kernels.sessions.repeating import Origin, origin_in
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import SessionError
from torchstone.kernels.verdicts.said import UNANSWERED

GATE = Gate(
    name="origin",
    order=97,
    title=Text("The answer is the kernels' own", "结果出自内核"),
    why=Text(
        "What is counted in the candidate's process its own code can change; what a kernel writes in "
        "another process it cannot.",
        "候选进程中的统计可能被其自身代码改动；内核在另一个进程中写出的值则不会。",
    ),
    remedy=Text(
        "give the kernels the inputs and weights as they are, and return what they wrote",
        "把输入和权重原样交给内核，并返回内核写出的值",
    ),
    needs_all=True,
    implementations=("triton", "numba", "c"),
    problem="relu",
    good={
        "numba": """import numba
import torch


@numba.njit
def relu(x, y):
    for i in range(x.size):
        y[i] = 0.0 if x[i] < 0.0 else x[i]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        relu(x.view(-1).numpy(), y.view(-1).numpy())
        return y
""",
    },
    bad={},
)


@GATE.check
def check(run: Run) -> GateResult:
    chosen = [call for call in run.main.own if call.right]
    if not chosen:
        return GateResult(GATE.name, "skipped", UNANSWERED)
    case = min(chosen, key=lambda call: sum(call.case.sizes)).case
    found = _watched_and_not(run, case)
    return GateResult(
        GATE.name, found.status, found.detail, close=_CLOSE if found.status == "gap" else ""
    )


_CLOSE = Text("launch the kernels at the top of the file, on arrays",
              "请在文件顶层启动内核，并以数组为参数")  # fmt: skip


def _watched_and_not(run: Run, case: PlannedCase) -> Origin:
    """In a process that is watched, and in one that looks like use where it is not timed anyway."""
    modes = [Mode()]
    if run.candidate.implementation == "triton":
        modes.append(Mode(plain=True))
    for mode in modes:
        try:
            session, error = run.open_and_build(mode, (case.seed,))
            if error is not None:
                return Origin("gap", Text("the candidate does not load again", "候选无法再次加载"))
            found = origin_in(run, session, case, anew=True)
            session.end(late=True)
        except SessionError as late:
            return Origin("gap", Text(late.ended.reason, late.ended.reason))
        if found.status != "passed":
            return found
    return found
