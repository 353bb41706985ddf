"""Each relation on a program that breaks it and on one that keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.conductor.experiments.observing import observe
from torchstone.conductor.experiments.recording.session import Start
from torchstone.conductor.experiments.running import run_experiments
from torchstone.core.pictures import Table

FRAME = """
import copy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, Y = torch.randn(50, 6), torch.randint(3, (50,))
train_loader = DataLoader(TensorDataset(X[:32], Y[:32]), 8, shuffle=True)
val_loader = DataLoader(TensorDataset(X[{start}:], Y[{start}:]), 8)


class Net(nn.Module):
    def __init__(self, width={width}):
        super().__init__()
        self.first = nn.Linear(6, width)
        self.norm = nn.BatchNorm1d(8)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.first(x))))


class Average:
    def __init__(self, model):
        self.model = copy.deepcopy(model)
        self.decay = 0.99

    @torch.no_grad()
    def update(self, model):
        for a, b in zip(self.model.parameters(), model.parameters()):
            {average}
        {buffers}


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


def unread(model, weight):
    return model.last.bias.sum() * 0


@torch.no_grad()
def evaluate(model, loader):
    model.{mode}()
    total, count = 0.0, 0
    for x, y in loader:
        total += loss_of(model, x, y).item() {weight}
        count += {counted}
    model.train()
    return total / count


def main():
    model = Net()
    average = Average(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, {total})
    history = []
    best, kept = float("inf"), None
    for epoch in range(5):
        for x, y in train_loader:
            {clear_early}
            loss = {loss}
            loss.backward()
            {clear_late}
            optimizer.step()
            {step}
            history.append({keep})
            average.update(model)
        value = evaluate(model, val_loader)
        if value < best:
            best, kept = value, {backup}
    model.load_state_dict(kept)


if __name__ == "__main__":
    main()
"""
CLEAN = {
    "width": "8",
    "start": "32",
    "average": "a.lerp_(b, 0.01)",
    "buffers": "for a, b in zip(self.model.buffers(), model.buffers()):\n            if a.is_floating_point():\n                a.lerp_(b, 0.01)",
    "mode": "eval",
    "weight": "* len(y)",
    "counted": "len(y)",
    "total": "20",
    "clear_early": "optimizer.zero_grad()",
    "clear_late": "",
    "loss": "loss_of(model, x, y)",
    "keep": "loss.item()",
    "step": "scheduler.step()",
    "backup": "copy.deepcopy(model.state_dict())",
}
FAULTS = {
    "EX101": {
        "loss": "loss_of(model, x, y) + torch.log(torch.relu(x[:, 0]) * 0 - float(len(history) > 6)).mean()"
    },
    "EX102": {"clear_early": "", "clear_late": "optimizer.zero_grad()"},
    "EX103": {"clear_late": "[p.grad.neg_() for p in model.parameters()]"},
    "EX104": {"keep": "loss"},
    "EX105": {"backup": "model.state_dict()"},
    "EX106": {"loss": "(model(x)[:, :1] - y.float()).pow(2).mean()"},
    "EX107": {"weight": "", "counted": "1"},
    "EX108": {"average": "a.lerp_(b, -0.01)"},
    "EX127": {"average": "a.lerp_(b, self.decay)"},
    "EX109": {"start": "20"},
    "EX128": {"loss": "nn.functional.nll_loss(model(x).softmax(-1), y)"},
    "EX110": {"total": "4", "step": "(epoch == 0 and scheduler.step())"},
    "EX112": {"loss": "loss_of(model, x, y) + unread(model, x)"},
    "EX113": {"width": "8, dropout=0.1"},
    "EX114": {"mode": "train"},
    "EX115": {"step": "pass"},
}


def found(folder: Path, **changes: str) -> dict[str, str]:
    text = FRAME
    for key, value in {**CLEAN, **changes}.items():
        text = text.replace(f"{{{key}}}", value)
    (folder / "train.py").write_text(text)
    report = run_experiments(Start(folder, "train.py"))
    assert report.findings or not report.gaps, report.gaps
    lines = text.splitlines()
    return {item.rule: lines[item.line - 1].strip() for item in report.findings}


def test_a_clean_program_keeps_every_relation(tmp_path: Path) -> None:
    assert not found(tmp_path)


GROUPS = (
    ("EX101",), ("EX102", "EX112", "EX109"), ("EX103", "EX127"), ("EX106", "EX114"), ("EX110", "EX128"),
    ("EX104", "EX105", "EX107", "EX108", "EX113", "EX115"),
)  # fmt: skip
"""Faults that do not hide each other share a program."""


def test_every_fault_is_planted() -> None:
    assert sorted(rule for group in GROUPS for rule in group) == sorted(FAULTS)


@pytest.mark.parametrize("group", GROUPS, ids="+".join)
def test_a_program_breaks_relations(tmp_path: Path, group: tuple[str, ...]) -> None:
    changes = {key: value for rule in group for key, value in FAULTS[rule].items()}
    shown = found(tmp_path, **changes)
    assert set(group) <= set(shown), shown


def test_statistics_that_the_average_forgets(tmp_path: Path) -> None:
    assert "EX108" in found(tmp_path, buffers="pass")


def test_a_loss_is_written_down_once(tmp_path: Path) -> None:
    text = FRAME
    for key, value in CLEAN.items():
        text = text.replace(f"{{{key}}}", value)
    (tmp_path / "train.py").write_text(text)
    report = observe(Start(tmp_path, "train.py"))
    (table,) = report.measures[0].evidence
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == list(range(20))


def test_a_relation_that_ends_the_process_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    """As native code does that is called with inputs it was not written for."""
    text = FRAME.replace(
        "    total, count = 0.0, 0",
        "    if loader.batch_size != 8:\n        import os\n        os._exit(3)\n    total, count = 0.0, 0",
    )
    for key, value in {**CLEAN, "step": "pass"}.items():
        text = text.replace(f"{{{key}}}", value)
    (tmp_path / "train.py").write_text(text)
    report = run_experiments(Start(tmp_path, "train.py"))
    assert "EX115" in {item.rule for item in report.findings}
    lost = [gap for gap in report.gaps if gap.reason.id == "experiments.lost"]
    assert [gap.reason.text.en.partition(" ")[0] for gap in lost] == ["evaluation"]
