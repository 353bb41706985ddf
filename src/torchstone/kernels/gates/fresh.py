"""Every answer stands in memory of its own and stays as it was given."""

from __future__ import annotations

from torchstone.core.evidence import Command
from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import torch_sample
from torchstone.kernels.sessions.calls import LAID_OUT
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import both

_WORDS = {
    "an input": "某个输入", "a weight": "某个权重", "an earlier answer": "先前的结果",
    "another output": "另一个输出",
}  # fmt: skip

GATE = Gate(
    name="fresh",
    order=45,
    title=Text("Fresh storage", "独立存储"),
    why=Text(
        "A buffer that is used again changes an answer that was already given; an input handed "
        "back changes with its owner.",
        "重复使用的缓冲区会改变已给出的结果；直接返回输入会随其所有者而变。",
    ),
    remedy=Text("allocate the outputs in every call", "在每次调用中分配输出"),
    problem="relu",
    good={
        "torch": torch_sample("""y = torch.empty_like(x)
torch.clamp(x, min=0, out=y)
return y
"""),
    },
    bad={
        "torch": """import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, x):
        y = self.kept.setdefault(x.shape, torch.zeros(x.shape))
        y.copy_(torch.relu(x))
        return y
""",
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    for call in run.main.calls:
        aliases = call.reply.aliases
        # what is already in the right layout may be handed on as it is
        if run.facts.aliases or call.family in LAID_OUT or call.case.resized:
            aliases = [item for item in aliases if item != "an input"]
        if aliases:
            detail = both("{name}: the answer lies in the memory of {what}",
                          "{name}：结果位于{zh}的内存中", name=call.name, what=aliases[0],
                          zh=_WORDS[aliases[0]])  # fmt: skip
            return GateResult(GATE.name, "failed", detail, (Command(call.name, 1, detail.en),))
        if call.reply.previous_changed:
            detail = both("{name}: the call changed an answer that was given before",
                          "{name}：本次调用改变了先前给出的结果", name=call.name)  # fmt: skip
            return GateResult(GATE.name, "failed", detail, (Command(call.name, 1, detail.en),))
    return GateResult(GATE.name, "passed")
