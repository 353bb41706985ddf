"""With every kernel replaced by nothing the answer is wrong: so it is the kernel that gives it."""

from __future__ import annotations

from torchstone.core.evidence import Command
from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.messages.to_candidate import Mode
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import SessionError
from torchstone.kernels.verdicts.said import both

GATE = Gate(
    name="ghost",
    order=80,
    title=Text("Ghost run", "空内核运行"),
    why=Text(
        "If the answer stays right when the kernel does nothing, something else computed it.",
        "如果内核什么都不做时答案仍然正确，说明答案是别处算出的。",
    ),
    remedy=Text("let the answer come from the kernel", "让结果由内核给出"),
    implementations=("triton", "numba", "c"),
    needs_all=True,
    problem='''import torch
from torch import nn


class Model(nn.Module):
    """The transposed matrix, as a copy."""

    def forward(self, x):
        return x.t().contiguous()


def get_inputs():
    return [torch.randn(19, 23)]


def get_init_inputs():
    return []
''',
    good={
        "c": """import torch
from torchstone_kernel import library

C_SOURCE = r'''
void turn(const float *x, float *y, long rows, long columns) {
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < columns; j++) y[j * rows + i] = x[i * columns + j];
}
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[1], x.shape[0])
        library.turn(x, y, x.shape[0], x.shape[1])
        return y
""",
    },
    bad={
        "c": """import torch
from torchstone_kernel import library

C_SOURCE = r'''
void decoy(const float *x, float *y, long n) { if (n > 1) y[0] = x[1]; }
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        unused = torch.empty(1)
        library.decoy(x.contiguous(), unused, x.numel())
        return x.t().contiguous()
""",
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    try:
        session, error = run.open_and_build(Mode(ghost=True))
        if error is not None:
            return GateResult(GATE.name, "passed")
        call = run.call(session, run.facts.cases[0])
        session.end(late=True)
    except SessionError:
        return GateResult(GATE.name, "passed")
    if not call.right:
        return GateResult(GATE.name, "passed")
    detail = both("{name}: the answer is right although no kernel ran",
                  "{name}：没有内核运行，结果却是正确的", name=call.name)  # fmt: skip
    return GateResult(GATE.name, "failed", detail, (Command(call.name, 1, detail.en),))
