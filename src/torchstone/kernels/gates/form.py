"""Outputs have the reference's count, type, shape, dtype and a plain layout."""

from __future__ import annotations

from torchstone.core.pictures import Table
from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import torch_sample
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import COMPARED, form_text, joined

GATE = Gate(
    name="form",
    order=40,
    title=Text("Count, type, shape, dtype, strides", "数量、类型、形状、数据类型与步长"),
    why=Text(
        "Comparing after a reshape or a cast has passed flattened and half-precision answers.",
        "在变形或转换之后比较，会放过展平的结果和半精度的结果。",
    ),
    remedy=Text("allocate the outputs as the reference returns them", "按参考实现的返回值分配输出"),
    stops=True,
    problem="relu",
    good={
        "torch": torch_sample("""return torch.clamp_min(x.t().contiguous(), 0).t()
"""),
    },
    bad={
        "torch": torch_sample("""return torch.relu(x).reshape(-1)
"""),
        "numpy": """import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.from_numpy(np.maximum(x.numpy(), 0).astype(np.float64))
""",
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    wrong = [call for call in run.main.calls if call.facts.form]
    if not wrong:
        return GateResult(GATE.name, "passed")
    texts = [text for call in wrong[:1] for text in form_text(call)]
    rows = tuple(
        (call.name, fault.what, str(fault.got), str(fault.want))
        for call in wrong[:12]
        for fault in call.facts.form
    )
    columns = (
        Text("case", "用例"),
        Text("what", "项目"),
        Text("got", "得到"),
        Text("right", "正确"),
    )
    table = Table(Text("Outputs", "输出"), columns, rows, COMPARED)
    return GateResult(GATE.name, "failed", joined(texts), (table,))
