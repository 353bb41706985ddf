"""The problem can tell a kernel from a trivial one; where it cannot, the families can."""

from __future__ import annotations

from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import torch_sample
from torchstone.kernels.messages.to_referee import FindProbes, Probes
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import UNANSWERED, both, joined

_WORDS = {
    "identity": "恒等函数",
    "zeros": "全零",
    "constant": "常数",
    "independent": "与输入无关的结果",
}

GATE = Gate(
    name="probes",
    order=95,
    title=Text("Probes of the problem", "对问题本身的探查"),
    why=Text(
        "A test that the identity or zeros would pass proves nothing about a kernel.",
        "恒等函数或全零就能通过的测试，证明不了内核的任何性质。",
    ),
    problem='''import torch
from torch import nn


class Model(nn.Module):
    """ReLU, with inputs that are never negative."""

    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(31, 17)]


def get_init_inputs():
    return []
''',
    good={
        "torch": torch_sample("""return torch.clamp(x, min=0)
"""),
    },
    bad={},
)


@GATE.check
def check(run: Run) -> GateResult:
    if not run.main.families:
        return GateResult(GATE.name, "skipped", UNANSWERED)
    found = run.ask_referee(FindProbes(), Probes).found
    if not found:
        return GateResult(GATE.name, "passed")
    texts = []
    open_left = False
    for name, stops in found.items():
        if stops:
            texts.append(both(
                "test too weak: its own inputs would accept {name}; {count} families reject it",
                "测试过弱：其自身输入会接受{zh}；有 {count} 个类别会拒绝它",
                name=name, zh=_WORDS[name], count=len(stops),
            ))  # fmt: skip
        else:
            open_left = True
            texts.append(both(
                "test too weak: its own inputs and every family would accept {name}",
                "测试过弱：其自身输入和所有类别都会接受{zh}", name=name, zh=_WORDS[name],
            ))  # fmt: skip
    close = Text("change get_inputs so that the answer depends on every input",
                 "修改 get_inputs，使答案取决于每个输入")  # fmt: skip
    if not open_left:
        close = Text(
            "closed for this verdict by our own inputs; give get_inputs negative values and spread",
            "本次验证已由我们自己的输入弥补；请让 get_inputs 给出负值和更大的取值范围",
        )
    return GateResult(GATE.name, "gap", joined(texts), close=close)
