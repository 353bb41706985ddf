"""Triton's interpreter computes bfloat16 wrongly without a word: it is refused, loudly."""

from __future__ import annotations

from torchstone.core.evidence import Command
from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.sessions.run import Run

SAID = "computes in bfloat16"

GATE = Gate(
    name="bfloat16",
    order=25,
    title=Text("No arithmetic in bfloat16 under the interpreter", "解释器下不做 bfloat16 运算"),
    why=Text(
        "The interpreter keeps bfloat16 as whole numbers: sums and products of them are garbage "
        "that looks like an answer.",
        "解释器把 bfloat16 存为整数：其和与积是看起来像答案的乱码。",
    ),
    remedy=Text(
        "convert right after the load, `tl.load(...).to(tl.float32)`, and back at the store",
        "加载后立即转换：`tl.load(...).to(tl.float32)`，存储时再转换回去",
    ),
    implementations=("triton",),
    stops=True,
    problem='''import torch
from torch import nn


class Model(nn.Module):
    """Twice the input, in bfloat16."""

    def forward(self, x):
        return x + x


def get_inputs():
    return [torch.randn(300).to(torch.bfloat16)]


def get_init_inputs():
    return []
''',
    good={
        "triton": """import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + at, (value + value).to(tl.bfloat16), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        return y
""",
    },
    bad={
        "triton": """import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, value + value, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        return y
""",
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    for call in run.main.own:
        if call.error is not None and SAID in call.error.text:
            detail = Text(
                "the kernel computes in bfloat16, which Triton's interpreter gets wrong",
                "内核以 bfloat16 计算，而 Triton 解释器的结果是错误的",
            )
            shown = Command(call.name, 1, detail.en)
            return GateResult(GATE.name, "failed", detail, (shown,), line=call.error.line)
    return GateResult(GATE.name, "passed")
