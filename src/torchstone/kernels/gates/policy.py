"""The source breaks no rule: what it imports, names and launches is what a kernel needs."""

from __future__ import annotations

from torchstone.core.evidence import Snippet
from torchstone.core.text import Text
from torchstone.kernels.c.source import Fault
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import torch_sample
from torchstone.kernels.policy.check import breaches
from torchstone.kernels.policy.reasons import C_SOURCE, QUESTION
from torchstone.kernels.policy.syntax import Breach
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import joined

GATE = Gate(
    name="policy",
    order=10,
    title=Text("Static policy", "静态规则"),
    why=Text(
        "A kernel needs neither frames nor files nor the reference: reaching for them is how "
        "public checkers were fooled.",
        "内核不需要访问栈帧、文件或参考实现：公开的检查器正是因此被欺骗的。",
    ),
    remedy=Text(
        "compute in the kernel itself, with the imports that docs/kernel.md lists",
        "在内核自身中计算，只使用 docs/kernel.md 列出的导入",
    ),
    stops=True,
    problem="relu",
    good={
        "torch": torch_sample("""return torch.clamp(x, min=0)
"""),
    },
    bad={
        "torch": """import sys

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return sys._getframe(1).f_locals["expected"]
""",
        "triton": """import torch
import triton
import triton.language as tl


@triton.jit
def decoy(x, y, n, BLOCK: tl.constexpr):
    tl.store(y, tl.load(x))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
""",
        "c": """import torch
from torchstone_kernel import library

C_SOURCE = r'''
#include <stdlib.h>
void relu(const float *x, float *y, long n) { system("true"); }
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        library.relu(x.contiguous(), y, x.numel())
        return y
""",
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    found = breaches(run.candidate)
    if any(item.reason is QUESTION for item in found):
        _ = run.facts  # a reference that draws at random is the problem's fault, and comes first
    fault = run.c_source if not found else None
    if isinstance(fault, Fault):
        said = Text(f"C: {fault.text}", f"C：{fault.text}")
        found = [Breach(fault.line, said, C_SOURCE)]
    if not found:
        return GateResult(GATE.name, "passed")
    numbered = [
        Text(f"line {item.line} {item.what.en}", f"第 {item.line} 行 {item.what.zh}")
        if item.line
        else item.what
        for item in found
    ]
    source = run.candidate.source.splitlines()
    first = next((item.line for item in found if item.line), 1)
    start = max(1, first - 2)
    shown = "\n".join(source[start - 1 : first + 2])
    snippet = Snippet("candidate.py", start, shown or "(empty)", mark_line=first)
    reason = found[0].reason
    assert reason is not None
    return GateResult(
        GATE.name,
        "failed",
        joined(numbered),
        (snippet,),
        remedy=reason.remedy,
        line=first,
        why=reason.why,
    )
