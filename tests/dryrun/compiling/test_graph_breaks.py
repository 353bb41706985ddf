"""torch.compile's front end over what the program called."""

from __future__ import annotations

from collections.abc import Callable

from torchstone.core.report import Report

Run = Callable[..., Report]

TRAIN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 4)
        self.plain = torch.ones(4)

    def forward(self, x):
        h = self.layer(x) * self.plain.to(x.device)
        {line}
        return h

net = {compiled}(Net().cuda())
data = TensorDataset(torch.randn({samples}, 16), torch.zeros({samples}).long())
for x, y in DataLoader(data, batch_size=8):
    nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
"""


def compile_of(run: Run, line: str, samples: int, compiled: str = "torch.compile") -> Report:
    text = TRAIN.format(line=line, samples=samples, compiled=compiled)
    return run(text, compile=True, max_paths=1)


def test_one_graph_for_all_calls_is_no_finding(run: Run) -> None:
    report = compile_of(run, "h = h.relu()", 8)
    assert report.findings == ()
    assert report.gaps == ()
    assert {item.name: item.value for item in report.measures}["graphs"] == 1


def test_a_branch_on_a_value_breaks_the_graph_and_another_size_recompiles(run: Run) -> None:
    report = compile_of(run, "h = h.relu() if h.sum() > 0 else h", 20)
    found = {(item.rule, item.line): item for item in report.findings}
    assert set(found) == {("DR401", 13), ("DR402", 11)}
    assert "a branch on the value of a tensor" in found["DR401", 13].message()
    assert "expected 8, actual 4" in found["DR402", 11].message()


def test_modules_that_are_never_compiled_are_tried_too(run: Run) -> None:
    report = compile_of(run, "h.tolist()", 8, compiled="")
    assert [(item.rule, item.line) for item in report.findings] == [("DR401", 13)]
