"""The inputs are what they were after the call, unless the reference changes them, too."""

from __future__ import annotations

from torchstone.core.evidence import Command
from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import torch_sample
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import both

GATE = Gate(
    name="inputs",
    order=65,
    title=Text("Inputs unchanged", "输入不变"),
    why=Text(
        "A kernel that writes into its inputs gives the right answer and breaks what comes next.",
        "写入输入的内核虽然答案正确，却会破坏后续计算。",
    ),
    remedy=Text("write into a buffer of its own", "写入独立的缓冲区"),
    problem="relu",
    good={
        "torch": torch_sample("""return x.clone().clamp_(min=0)
"""),
    },
    bad={
        "torch": torch_sample("""return x.clamp_(min=0).clone()
"""),
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    writes = run.facts.writes_inputs
    for call in run.main.calls:
        arrays = [item for item in call.reply.inputs_after if item]
        pairs = zip(call.sent, arrays, strict=False)
        changed = [i for i, (sent, now) in enumerate(pairs) if sent != now]
        allowed = {i for i, wrote in enumerate(writes) if wrote}
        for index in changed:
            if index not in allowed:
                detail = both("{name}: input {index} was changed by the call",
                              "{name}：调用改变了输入 {index}", name=call.name, index=index)  # fmt: skip
                return GateResult(GATE.name, "failed", detail, (Command(call.name, 1, detail.en),))
    return GateResult(GATE.name, "passed")
