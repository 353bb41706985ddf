"""The kernel does the work: it is launched, and nothing around it computes."""

from __future__ import annotations

from torchstone.core.pictures import Table
from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import torch_sample, triton_relu
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import COUNTED, both

GATE = Gate(
    name="work",
    order=35,
    title=Text("The kernel does the work", "由内核完成计算"),
    why=Text(
        "A kernel that is defined and launched for show, while torch computes the answer, passes "
        "every comparison.",
        "只为摆设而定义并启动内核、实际由 torch 计算的做法，能通过一切数值比较。",
    ),
    remedy=Text(
        "around the kernel only allocate, copy, cast and reshape; compute inside it",
        "内核之外只做分配、复制、类型转换与变形；计算放在内核之内",
    ),
    implementations=("triton", "numba", "c", "numpy"),
    problem="relu",
    good={
        "triton": triton_relu("""@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(value < 0, 0.0, value), mask=at < n)
"""),
    },
    bad={
        "triton": """import torch
import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = torch.relu(x.contiguous())
        y = torch.empty_like(x)
        copy[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
""",
        "numpy": torch_sample("""return x.clamp(min=0)
"""),
        "c": """import numpy as np
import torch
from torchstone_kernel import library

C_SOURCE = r'''
void copy(const float *x, float *y, long n) { for (long i = 0; i < n; i++) y[i] = x[i]; }
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = np.maximum(x.contiguous().numpy(), 0)
        y = torch.empty(x.shape)
        library.copy(x, y, x.size)
        return y
""",
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    for call in run.main.calls:
        if call.ended is not None:
            continue
        found = call.reply.operators
        if found:
            names = ", ".join(found[:6])
            table = Table(
                Text("Computed outside of the kernel", "内核之外的计算"),
                (Text("operator", "算子"),), tuple((name,) for name in found), COUNTED,
            )  # fmt: skip
            detail = both("{name}: computed outside of the kernel: {what}",
                          "{name}：在内核之外计算：{what}", name=call.name, what=names)  # fmt: skip
            return GateResult(GATE.name, "failed", detail, (table,))
    own = [call for call in run.main.own if call.error is None and call.ended is None]
    if run.has_kernels and any(not call.reply.launches for call in own):
        detail = Text("no kernel is launched", "没有启动任何内核")
        return GateResult(GATE.name, "failed", detail)
    return GateResult(GATE.name, "passed")
