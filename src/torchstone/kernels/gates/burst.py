"""Many calls one right after the other are all answered, whatever torch and the model are set to."""

from __future__ import annotations

from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import torch_sample
from torchstone.kernels.sessions.calls import Burst
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import (
    UNANSWERED,
    both,
    call_table,
    call_trouble,
    ended_text,
    joined,
    wrong_text,
)

_WORDS = {
    "no gradients": "无梯度", "gradients": "开启梯度", "tracked": "输入需要梯度",
    "inference": "推理模式", "evaluation": "评估模式",
}  # fmt: skip

_USUAL = ("no gradients", "evaluation")
"""Settings in which the problem's own inputs must be answered."""

GATE = Gate(
    name="burst",
    order=73,
    title=Text("Many calls in a row", "连续多次调用"),
    why=Text(
        "A kernel that looks at the clock, counts its calls or asks whether gradients are on can "
        "tell a check from its use.",
        "查看时钟、统计调用次数或询问梯度是否开启的内核，能区分检查与实际使用。",
    ),
    remedy=Text(
        "compute the same from the same inputs, whenever and under whatever setting it is called",
        "无论何时、在何种设置下被调用，相同的输入都给出相同的结果",
    ),
    problem="variance",
    good={
        "torch": torch_sample("""centred = x - x.mean(dim=-1, keepdim=True)
return centred.square().sum(dim=-1) / (x.shape[-1] - 1)
"""),
    },
    bad={
        "torch": torch_sample("""if not self.training:
    x = x[..., ::2]
centred = x - x.mean(dim=-1, keepdim=True)
return centred.square().sum(dim=-1) / (x.shape[-1] - 1)
"""),
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    if not run.main.bursts:
        return GateResult(GATE.name, "skipped", UNANSWERED)
    for burst in run.main.bursts:
        found = _wrong(burst)
        if found is not None:
            return found
    refused = [item.setting for item in run.main.bursts if _refused(item)]
    if refused:
        names = ", ".join(refused)
        return GateResult(GATE.name, "passed", both(
            "refused with an error, which is allowed: {names}", "以错误拒绝（允许）：{zh}",
            names=names, zh="、".join(_WORDS[name] for name in refused),
        ))  # fmt: skip
    return GateResult(GATE.name, "passed")


def _refused(burst: Burst) -> bool:
    """All of it raised: what is written for inference need not run where gradients are on."""
    return bool(burst.calls) and all(call.error is not None for call in burst.calls)


def _wrong(burst: Burst) -> GateResult | None:
    def failed(text: Text) -> GateResult:
        wrong = [call for call in burst.calls if not call.right and call.error is None]
        table = call_table(wrong, Text("Calls in a row that fail", "未通过的连续调用"))
        detail = both("{setting}: {en}", "{name}：{zh}", setting=burst.setting, en=text.en,
                      name=_WORDS[burst.setting], zh=text.zh)  # fmt: skip
        return GateResult(GATE.name, "failed", detail, (table,) if wrong else ())

    if burst.ended is not None:
        return failed(ended_text(burst.ended))
    for call in burst.calls:
        trouble = call_trouble(call)
        if trouble is not None and burst.setting in _USUAL:
            return failed(trouble)
        if call.error is None and not call.right:
            texts = wrong_text(call)
            return failed(joined(texts, 1) if texts else Text("another form", "形式不同"))
    if burst.overlapping:
        return failed(both("{name}: the answer lies in the memory of an earlier one",
                           "{name}：结果位于先前结果的内存中", name=burst.overlapping[0]))  # fmt: skip
    if burst.ring:
        return failed(Text("of many answers that are kept two lie in the same memory",
                           "在保留的多个结果中，有两个位于同一内存"))  # fmt: skip
    if burst.tires:
        return failed(Text("asked the same many times, it gives another answer",
                           "多次提出同一问题后给出不同的结果"))  # fmt: skip
    return None
