"""Weights that change after the first call change the answer."""

from __future__ import annotations

from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
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
    name="weights",
    order=72,
    title=Text("Weights as they are now", "使用当前的权重"),
    why=Text(
        "Weights packed on the first call are right until the model is trained on, or a checkpoint "
        "is loaded.",
        "首次调用时打包的权重，在继续训练或加载检查点之前都是对的。",
    ),
    remedy=Text(
        "read the weights in every call, or pack them again when their version or address changes",
        "每次调用都读取权重，或在其版本或地址变化时重新打包",
    ),
    problem="linear_gelu",
    good={
        "torch": """import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, width, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outputs, width) / width**0.5)
        self.bias = torch.nn.Parameter(torch.randn(outputs))
        self.packed, self.version = None, None

    def forward(self, x):
        version = (self.weight.data_ptr(), self.weight._version)
        if version != self.version:
            self.packed, self.version = self.weight.detach().t().contiguous(), version
        return F.gelu(x @ self.packed + self.bias, approximate="tanh")
""",
    },
    bad={
        "torch": """import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, width, outputs):
        super().__init__()
        self.matrix = torch.nn.Parameter(torch.randn(outputs, width) / width**0.5)
        self.shift = torch.nn.Parameter(torch.randn(outputs))
        self.packed, self.address = None, None

    def forward(self, x):
        if self.matrix.data_ptr() != self.address:
            self.packed = self.matrix.detach().t().contiguous()
            self.address = self.matrix.data_ptr()
        return F.gelu(x @ self.packed + self.shift, approximate="tanh")
""",
        "numpy": """import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outputs, width) / width**0.5)
        self.bias = torch.nn.Parameter(torch.randn(outputs))
        self.arrays = [self.weight.detach().numpy(), self.bias.detach().numpy()]

    def forward(self, x):
        y = (x.numpy() @ self.arrays[0].T + self.arrays[1]).astype(np.float32)
        inner = np.float32(0.7978845608) * (y + np.float32(0.044715) * y * y * y)
        return torch.from_numpy(np.float32(0.5) * y * (1 + np.tanh(inner)))
""",
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    main = run.main
    if not main.weights:
        return GateResult(GATE.name, "skipped", Text("it has none", "该问题没有权重"))
    if not main.named:
        return GateResult(GATE.name, "undecided", Text(
            "they could not be changed: their names and contents are not the problem's",
            "无法更改：其名称与内容都与问题不同",
        ))  # fmt: skip
    if main.swapped is None:
        return GateResult(GATE.name, "skipped", UNANSWERED)
    wrong = [(way, call) for way, call in main.reweighed if not call.right]
    if not wrong and not main.weights_move:
        return GateResult(GATE.name, "undecided", Text(
            "other weights change nothing in the answers that the reference gives here",
            "换用其他权重不会改变参考在此给出的答案",
        ))  # fmt: skip
    if not wrong:
        return GateResult(GATE.name, "passed")
    texts = []
    for way, call in wrong:
        said = call_trouble(call) or joined(
            wrong_text(call) or [Text("another form", "形式不同")], 1
        )
        texts.append(both("weights {way}: {en}", "{zh}的权重：{more}", way=way, en=said.en,
                          zh=_WAYS[way], more=said.zh))  # fmt: skip
    title = Text("Other weights, given after the first call", "首次调用后换用其他权重")
    table = call_table([call for _, call in wrong], title)
    return GateResult(GATE.name, "failed", joined(texts, 3), (table,))


_WAYS = {"in place": "就地更改", "loaded": "重新加载", "assigned": "重新赋值"}
