"""The problem's own inputs are answered at their own sizes, however large they are."""

from __future__ import annotations

from torchstone.core.evidence import Command
from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import OWN_SIZE, GateResult
from torchstone.kernels.gate_samples import torch_sample
from torchstone.kernels.sessions.full_size_run import FullSizeRun, run_in_full
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import (
    both,
    call_trouble,
    form_text,
    joined,
    wrong_text,
)

_PROBLEM = '''import torch


class Model(torch.nn.Module):
    """ReLU of more elements than families of inputs are made of."""

    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(1100, 2000)]


def get_init_inputs():
    return []
'''

GATE = Gate(
    name=OWN_SIZE,
    order=91,
    title=Text("The problem's own sizes", "问题自身的尺寸"),
    why=Text(
        "A grid that is capped, a counter that overflows or a branch for large inputs is right at every "
        "smaller size.",
        "被截断的网格、溢出的计数器或针对大输入的分支，在较小的尺寸下都是对的。",
    ),
    remedy=Text(
        "check the number of programs, the width of indices and branches that depend on the size",
        "检查程序数量、下标的位宽以及取决于尺寸的分支",
    ),
    needs_all=True,
    problem=_PROBLEM,
    good={
        "torch": torch_sample("""return torch.where(x < 0, torch.zeros_like(x), x)
"""),
    },
    bad={
        "torch": torch_sample("""y = torch.clamp(x, min=0)
if x.shape[0] > 1050:
    y[1050] = 0
return y
"""),
    },
)
_HOW = {
    "slices": Text("{rows} slices compared in double precision, everything else in the problem's own",
                   "{rows} 个切片以双精度比较，其余以问题自身的精度比较"),
    "double": Text("compared in double precision", "以双精度比较"),
    "own format": Text("compared with the reference in its own format: in double precision it does not fit",
                       "与参考在其自身格式下比较：双精度放不下"),
}  # fmt: skip


@GATE.check
def check(run: Run) -> GateResult:
    if not run.facts.small:
        return GateResult(GATE.name, "passed", Text("all other gates ran at them",
                                                    "其他检查项均在该尺寸下运行"))  # fmt: skip
    found = run_in_full(run)
    if found.status == "limit":
        return GateResult(GATE.name, "gap", found.why, close=found.close)
    return _wrong(run, found) or GateResult(GATE.name, "passed", _passed(found))


def _passed(found: FullSizeRun) -> Text:
    assert found.call is not None
    how = _HOW[found.call.facts.how]
    return both(
        "{shapes}: " + how.en,
        "{shapes}：" + how.zh,
        shapes=found.call.shapes,
        rows=found.call.facts.rows,
    )


def _wrong(run: Run, found: FullSizeRun) -> GateResult | None:
    """What the run showed to be wrong; None when nothing was."""
    call = found.call
    assert call is not None
    trouble = call_trouble(call)
    if trouble is not None:
        said = both("{name}: {en}", "{name}：{zh}", name=call.name, en=trouble.en, zh=trouble.zh)
        return _failed([said], call.name)
    texts = [*form_text(call), *wrong_text(call)]
    if call.reply.operators:
        names = ", ".join(call.reply.operators[:6])
        texts.append(both("{name}: computed outside of the kernel: {what}",
                          "{name}：在内核之外计算：{what}", name=call.name, what=names))  # fmt: skip
    faults = [fault.kind for fault in call.reply.faults]
    faults += [f"written {zone.side} {zone.buffer}" for zone in call.reply.zones]
    texts += [
        both("{name}: {what}", "{name}：{what}", name=call.name, what=what) for what in faults
    ]
    writes = [i for i, wrote in enumerate(run.facts.writes_inputs) if wrote]
    if call.reply.changed >= 0 and call.reply.changed not in writes:
        texts.append(both("{name}: input {index} was changed by the call",
                          "{name}：调用改变了输入 {index}", name=call.name,
                          index=call.reply.changed))  # fmt: skip
    return _failed(texts, call.name) if texts else None


def _failed(texts: list[Text], name: str) -> GateResult:
    detail = joined(texts, 3)
    return GateResult(GATE.name, "failed", detail, (Command(name, 1, detail.en),))
