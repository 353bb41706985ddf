"""The candidate answers every one of the problem's own inputs, and its process lives."""

from __future__ import annotations

from torchstone.core.evidence import Command
from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import torch_sample
from torchstone.kernels.sessions.limits import MORE_MEMORY
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import both, call_trouble

GATE = Gate(
    name="answers",
    order=30,
    title=Text("Answers and survives", "给出结果且不崩溃"),
    why=Text(
        "A call that raises, hangs, eats memory or kills its process is no answer, whatever it "
        "printed before.",
        "抛出异常、不结束、耗尽内存或使进程崩溃的调用不算结果，无论它之前打印了什么。",
    ),
    remedy=Text("fix the error that is quoted", "修正所引用的错误"),
    stops=True,
    problem="relu",
    good={
        "torch": torch_sample("""print("PASS")
return (x + x.abs()) / 2 if torch.isfinite(x).all() else torch.relu(x)
"""),
    },
    bad={
        "torch": torch_sample("""print("PASS")
raise ValueError("not today")
"""),
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    if run.main.limit.en:
        return GateResult(GATE.name, "gap", run.main.limit, close=MORE_MEMORY, limit=True)
    for call in run.main.own:
        trouble = call_trouble(call)
        if trouble is None:
            continue
        output = call.ended.output if call.ended is not None else trouble.en
        detail = both("{name}: {en}", "{name}：{zh}", name=call.name, en=trouble.en, zh=trouble.zh)
        line = call.error.line if call.error is not None else 0
        shown = Command(call.name, 1, output or "(nothing was printed)")
        return GateResult(GATE.name, "failed", detail, (shown,), line=line)
    return GateResult(GATE.name, "passed")
