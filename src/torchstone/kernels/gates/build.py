"""The candidate loads, compiles and makes a `ModelNew`."""

from __future__ import annotations

from torchstone.core.evidence import Command
from torchstone.core.text import Text
from torchstone.kernels.c.linking import compiler
from torchstone.kernels.c.source import CSource
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.sessions.limits import ran_out
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import ended_text, error_text, steady

GATE = Gate(
    name="build",
    order=20,
    title=Text("Loads and compiles", "可加载与编译"),
    why=Text("What does not load computes nothing.", "无法加载的代码不会计算任何东西。"),
    remedy=Text("fix the error that is quoted", "修正所引用的错误"),
    stops=True,
    problem="relu",
    good={
        "numpy": """import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.from_numpy(np.maximum(x.numpy(), np.float32(0)))
""",
    },
    bad={
        "torch": """import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = undefined_name

    def forward(self, x):
        return torch.relu(x)
""",
        "c": """import torch
from torchstone_kernel import library

C_SOURCE = r'''
void relu(const float *x, float *y, long n) {
  for (long i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : nothing;
}
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        library.relu(x.contiguous(), y, x.numel())
        return y
""",
    },
)

_INSTALL = {
    "triton": "pip install 'torchstone[triton]'",
    "numba": "pip install 'torchstone[numba]'",
    "torch": "pip install 'torchstone[torch]'",
}


@GATE.check
def check(run: Run) -> GateResult:
    if run.candidate.implementation == "swft":
        return GateResult(
            GATE.name, "gap",
            Text("SWFT kernels run on Ascend hardware only", "SWFT 内核只能在昇腾硬件上运行"),
            close=Text("verify on a machine with an Ascend NPU and its toolkit",
                       "在装有昇腾 NPU 及其工具包的机器上验证"),
        )  # fmt: skip
    for name in run.packages:
        said = run.workshop.missing(name)
        if said:
            return GateResult(
                GATE.name, "gap", Text(f"{name} is not there: {said}", f"缺少 {name}：{said}"),
                close=_INSTALL.get(name, f"pip install {name}"),
            )  # fmt: skip
    if isinstance(run.c_source, CSource):
        if not compiler():
            return GateResult(
                GATE.name, "gap", Text("no C compiler was found", "未找到 C 编译器"),
                close=Text("install gcc or clang", "请安装 gcc 或 clang"),
            )  # fmt: skip
        said = run.c_runner[1]
        if said:
            text = steady(said)
            first = text.splitlines()[0]
            return GateResult(
                GATE.name, "failed", Text(f"C: {first}", f"C：{first}"),
                (Command("cc -O2 -static kernel.c", 1, text),), line=run.c_source.line,
            )  # fmt: skip
    main = run.main
    error = main.load_error or main.build_error
    if main.ended is not None:
        return GateResult(
            GATE.name, "failed", ended_text(main.ended), (_printed(main.ended.output),)
        )
    if error is None:
        return GateResult(GATE.name, "passed")
    if error.memory:
        raise ran_out("import", run.memory_bytes)
    said = error_text(error)
    where = ("loading", "加载") if main.load_error else ("making ModelNew", "创建 ModelNew")
    detail = Text(f"{where[0]} raises {said}", f"{where[1]} 时抛出 {said}")
    return GateResult(
        GATE.name, "failed", detail, (Command("import candidate", 1, said),), line=error.line
    )


def _printed(output: str) -> Command:
    return Command("import candidate", 1, output or "(nothing was printed)")
