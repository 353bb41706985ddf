"""New data in the same memory gives a new answer."""

from __future__ import annotations

from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import torch_sample
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import (
    UNANSWERED,
    both,
    call_table,
    call_trouble,
    joined,
    wrong_text,
)

GATE = Gate(
    name="stale",
    order=70,
    title=Text("No stored answers", "不返回存储的结果"),
    why=Text(
        "An answer kept under an address, a shape, a sum or a first element is right until the "
        "data changes.",
        "以地址、形状、总和或首元素为键保存的结果，在数据变化之前都是对的。",
    ),
    remedy=Text("compute every answer from its inputs", "每个结果都由其输入计算得出"),
    problem="softmax",
    good={
        "torch": torch_sample("""e = torch.exp(x - x.amax(dim=-1, keepdim=True))
return e / e.sum(dim=-1, keepdim=True)
"""),
    },
    bad={
        "torch": """import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.known = {}

    def forward(self, x):
        flat = x.reshape(-1)
        key = (x.shape, float(x.sum()), float(flat[0]), float(flat[-1])) if x.numel() else ()
        if key not in self.known:
            self.known[key] = torch.softmax(x, dim=-1)
        return self.known[key].clone()
""",
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    call = run.main.swapped
    if call is None:
        return GateResult(GATE.name, "skipped", UNANSWERED)
    trouble = call_trouble(call)
    if trouble is not None:
        detail = both("called again: {en}", "再次调用：{zh}", en=trouble.en, zh=trouble.zh)
        return GateResult(GATE.name, "failed", detail)
    if call.right:
        if not run.main.swapped_differs:
            return GateResult(GATE.name, "undecided", Text(
                "two elements exchanged change nothing in this problem",
                "在此问题中交换两个元素不会改变结果",
            ))  # fmt: skip
        return GateResult(GATE.name, "passed")
    texts = wrong_text(call)
    detail = joined(texts, 1) if texts else Text("another form", "形式不同")
    table = call_table([call], Text("Two elements exchanged in the same memory",
                                    "在同一内存中交换两个元素"))  # fmt: skip
    return GateResult(GATE.name, "failed", detail, (table,))
