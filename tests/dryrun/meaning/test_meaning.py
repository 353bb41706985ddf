"""What values mean: the wrong numbers for a loss, graphs that are cut, rows in two data sets."""

from __future__ import annotations

from collections.abc import Callable

from torchstone.core.report import Report

Run = Callable[..., Report]

_START = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset

x, y = torch.randn(24, 8), torch.randint(0, 4, (24,))
"""

_NUMBERS = (
    _START
    + """
class Net(nn.Module):
    def __init__(self, last):
        super().__init__()
        self.head = nn.Sequential(nn.Linear(8, 4))
        if last is not None:
            self.head.add_module("last", last)
    def forward(self, x):
        return self.head(x), x

def train(net, criterion, target):
    out, _ = net(x)
    criterion(out.view(-1, 4), target).backward()

soft, logs, sigmoid, hot = nn.Softmax(dim=1), nn.LogSoftmax(dim=1), nn.Sigmoid(), F.one_hot(y, 4).float()
"""
)
_WRONG = """
train(Net(soft), lambda p, t: F.cross_entropy(p, t), y)
train(Net(None), lambda p, t: F.nll_loss(p, t), y)
train(Net(soft), lambda p, t: F.nll_loss(p, t), y)
train(Net(sigmoid), lambda p, t: F.binary_cross_entropy_with_logits(p, t), hot)
train(Net(logs), lambda p, t: F.binary_cross_entropy(p, t), hot)
"""
_RIGHT = """
train(Net(None), nn.CrossEntropyLoss(), y)
train(Net(logs), nn.NLLLoss(), y)
train(Net(sigmoid), nn.BCELoss(), hot)
train(Net(None), nn.BCEWithLogitsLoss(), hot)
train(Net(logs), nn.CrossEntropyLoss(), y)
train(Net(logs), nn.KLDivLoss(), hot.softmax(-1))
train(Net(soft), lambda p, t: F.nll_loss(p.clamp(1e-6).log(), t), y)
"""

_CUT = (
    _START
    + """
body, head = nn.Linear(8, 8), nn.Linear(8, 4)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], 0.1)
for _ in range(2):
    hidden = CUT  # here
    opt.zero_grad()
    F.cross_entropy(head(hidden), y).backward()
    opt.step()
"""
)

_ROWS = (
    _START
    + """
whole = TensorDataset(x, y)
train_rows, test_rows = SPLIT
net = nn.Linear(8, 4)
opt = torch.optim.SGD(net.parameters(), 0.1)
for a, b in DataLoader(train_rows, 6):
    opt.zero_grad()
    F.cross_entropy(net(a), b).backward()
    opt.step()
with torch.no_grad():
    for a, b in DataLoader(test_rows, 6):  # here
        net(a).argmax(1).eq(b).float().mean()
"""
)


_LEFT_OUT = (
    _START
    + """
class Net(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers, self.out = layers, nn.Linear(8, 4)
    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))  # in the list
        return self.out(x)  # the head

net = Net(LAYERS)
opt = torch.optim.SGD(OPTIMIZED.parameters(), 0.1)
CHANGE
opt.zero_grad()
LOSS.backward()  # backward
opt.step()
"""
)
_LOSS = "F.cross_entropy(net(x), y)"


def found_in(run: Run, program: str) -> list[str]:
    """The rules of what is found, all of it at the marked line."""
    report = run(program)
    assert not [gap for gap in report.gaps if gap.failed], report.gaps
    here = next(n for n, line in enumerate(program.splitlines(), 1) if line.endswith("# here"))
    assert {item.line for item in report.findings} <= {here}
    return [item.rule for item in report.findings]


def test_a_loss_is_given_other_numbers_than_it_takes(run: Run) -> None:
    report = run(_NUMBERS + _WRONG)
    first = len(_NUMBERS.splitlines()) + 2
    found = [(item.rule, item.line) for item in report.findings]
    assert sorted(found) == [("DR204", first + place) for place in range(5)]
    said = next(item for item in report.findings if item.line == first)
    assert "takes logits and is given probabilities, made by F.softmax" in said.message("en")
    assert "需要logits" in said.message("zh")


def test_a_loss_that_fits_is_left_alone(run: Run) -> None:
    report = run(_NUMBERS + _RIGHT)
    assert report.findings == ()
    assert report.gaps == ()


def test_a_graph_that_is_cut_before_a_parameter(run: Run) -> None:
    for cut in ("body(x).relu().data", "torch.no_grad()(body)(x)"):
        assert found_in(run, _CUT.replace("CUT", cut)) == ["DR205"], cut
    kept = "body(x) + body(x).detach()"  # a stop of the gradient on one of two ways
    assert found_in(run, _CUT.replace("CUT", kept)) == []


def test_rows_that_are_trained_on_and_evaluated(run: Run) -> None:
    splits = {
        "Subset(whole, range(16)), Subset(whole, range(12, 24))": ["DR206"],
        "TensorDataset(x[:18], y[:18]), TensorDataset(x[12:], y[12:])": ["DR206"],
        "Subset(whole, range(16)), Subset(whole, range(16, 24))": [],
        "TensorDataset(x[:18], y[:18]), TensorDataset(x[18:], y[18:])": [],
    }
    for split, rules in splits.items():
        assert found_in(run, _ROWS.replace("SPLIT", split)) == rules, split


def test_numbers_of_samples_that_are_spread_along_another_axis(run: Run) -> None:
    program = (
        _START
        + """
images = nn.Parameter(torch.randn(8, 3, 8, 8))
table = torch.linspace(0, 1, 100)
scale = table[torch.randint(0, 100, (8,))]
(images * SCALE).sum().backward()  # here
"""
    )
    assert found_in(run, program.replace("SCALE", "scale")) == ["DR201"]
    assert found_in(run, program.replace("SCALE", "scale.view(-1, 1, 1, 1)")) == []


def test_parameters_that_the_loss_reaches_and_no_optimizer_has(run: Run) -> None:
    def lines(
        layers: str, change: str = "", optimized: str = "net", loss: str = _LOSS
    ) -> list[str]:
        program = _LEFT_OUT.replace("LAYERS", layers).replace("OPTIMIZED", optimized)
        program = program.replace("CHANGE", change).replace("LOSS", loss)
        report = run(program)
        assert report.gaps == ()
        rows = program.splitlines()
        return [f"{item.rule} {rows[item.line - 1].partition('# ')[2]}" for item in report.findings]

    registered, listed = "nn.ModuleList([nn.Linear(8, 8)])", "[nn.Linear(8, 8)]"
    assert lines(listed) == ["DR207 in the list"]
    assert lines(registered, "net.out = nn.Linear(8, 4)") == ["DR207 the head"]
    assert lines(registered) == []
    assert lines(registered, optimized="net.out") == []  # a body that is left as it is
    frozen = "net.layers[0].requires_grad_(False)"  # a teacher that no checkpoint should hold
    assert lines(listed, frozen) == []
    anew = f"torch.tensor({_LOSS}.item(), requires_grad=True)"
    assert lines(registered, loss=anew) == ["DR205 backward"]


_SCALED = (
    _START
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bias, self.out = nn.Conv2d(3, 4, 1), nn.Parameter(torch.zeros(6)), nn.Linear(4, 4)
    def forward(self, image, scale):
        return self.out(((self.conv(image) + self.bias) * SCALE).mean((2, 3)))  # here

net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1)
for image, scale, y in DataLoader(TensorDataset(torch.randn(6, 3, 6, 6), torch.rand(6).double(), y[:6]), 6):
    opt.zero_grad()
    F.cross_entropy(net(image, scale.float()), y).backward()
    opt.step()
"""
)


def test_numbers_of_samples_are_spread_along_a_width_that_is_equal_by_chance(run: Run) -> None:
    assert found_in(run, _SCALED.replace("SCALE", "scale")) == ["DR201"]
    assert found_in(run, _SCALED.replace("SCALE", "scale[:, None, None, None]")) == []
