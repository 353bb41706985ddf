"""Every element of the answer is written."""

from __future__ import annotations

from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import torch_sample
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import call_table, joined, unwritten_text

GATE = Gate(
    name="written",
    order=47,
    title=Text("Every element is written", "每个元素都已写入"),
    why=Text(
        "What a kernel leaves out holds whatever the memory held before.",
        "内核遗漏的元素会保留内存中原有的内容。",
    ),
    remedy=Text(
        "check the tail mask and the number of programs: the last block must reach the last element",
        "检查尾部掩码与程序数量：最后一个分块必须覆盖到最后一个元素",
    ),
    problem="relu",
    good={
        "torch": torch_sample("""y = torch.empty_like(x)
y.copy_(torch.clamp(x, min=0))
return y
"""),
    },
    bad={
        "torch": torch_sample("""y = torch.empty_like(x)
y[:, :-1] = torch.clamp(x[:, :-1], min=0)
return y
"""),
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    wrong = [call for call in run.main.calls if call.wrong("unwritten")]
    if not wrong:
        return GateResult(GATE.name, "passed")
    texts = [text for call in wrong for text in unwritten_text(call)[:1]]
    table = call_table(wrong, Text("Calls with unwritten elements", "存在未写入元素的调用"))
    return GateResult(GATE.name, "failed", joined(texts, 3), (table,))
