"""Accumulation, the length of a schedule and augmented splits: a program that breaks each, and one that keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.conductor.experiments.recording.session import Start
from torchstone.conductor.experiments.running import run_experiments

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def draw(number):
    generator = torch.Generator().manual_seed(number)
    return torch.rand(8, 9, generator=generator), 1 + 7 * (number % 5 == 0)


class Pictures(Dataset):
    def __init__(self, first, augment):
        self.first, self.augment = first, augment

    def __len__(self):
        return 24

    def __getitem__(self, index):
        picture, length = draw(self.first + index)
        if self.augment:
            picture = picture * (1 + 0.1 * torch.rand(()))
        return {"picture": picture, "length": length}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(9, 12)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.two = nn.Linear(12, 1)

    def forward(self, x):
        return self.two(self.drop(torch.relu(self.norm(self.one(x)))))[..., 0]


def total_loss(model, batch):
    seen = torch.arange(8)[None] < batch["length"][:, None]
    return (model(batch["picture"]) - 9 * batch["picture"][..., 0]).square().mul(seen).sum(), seen.sum()


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        rows = [total_loss(model, batch) for batch in loader]
    model.train()
    return float(sum(one for one, _ in rows)) / float(sum(two for _, two in rows))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Pictures(0, True), 3, shuffle=True)
    others = DataLoader(Pictures({others}, False), 3)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, {length})
    for _ in range(3):
        batches = list(loader)
        for first in range(0, len(batches), 4):
            group = batches[first : first + 4]
            count = sum(int(batch["length"].sum()) for batch in group)
            optimizer.zero_grad()
            for batch in group:
                {clear}
                loss, own = total_loss(model, batch)
                ({loss}).backward()
            optimizer.step()
            scheduler.step()
        evaluate(model, others)


if __name__ == "__main__":
    main()
"""
CLEAN = {"others": "100", "length": "3 * len(loader) // 4", "loss": "loss / count", "clear": "pass"}
FAULTS = {
    "EX109": ({"others": "12"}, "def __getitem__(self, index):"),
    "EX119": ({"loss": "loss / own / len(group)"}, "(loss / own / len(group)).backward()"),
    "EX120": (
        {"length": "3 * len(loader)"},
        "scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3 * len(loader))",
    ),
}

SEARCH = (
    "[item.data.mul_(1.001) for item in model.parameters()]; optimizer.zero_grad()"  # other weights
)


def found(folder: Path, **changes: str) -> dict[str, str]:
    text = PROGRAM
    for key, value in {**CLEAN, **changes}.items():
        text = text.replace(f"{{{key}}}", value)
    (folder / "train.py").write_text(text)
    report = run_experiments(Start(folder, "train.py"))
    held = {item.name.removeprefix("held:") for item in report.measures}
    (backwards,) = (item.value for item in report.measures if item.name == "backwards_per_step")
    assert backwards == 4.0
    lines = text.splitlines()
    shown = {item.rule: lines[item.line - 1].strip() for item in report.findings}
    assert set(FAULTS) <= held | set(shown), (held, shown, report.gaps)
    return shown


def test_a_clean_program_keeps_them(tmp_path: Path) -> None:
    assert not found(tmp_path)


def test_a_program_breaks_them(tmp_path: Path) -> None:
    changes = {key: value for change, _ in FAULTS.values() for key, value in change.items()}
    assert found(tmp_path, **changes) == {rule: line for rule, (_, line) in FAULTS.items()}


def test_a_schedule_that_ends_before_the_training(tmp_path: Path) -> None:
    line = "scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(loader) // 4)"
    assert found(tmp_path, length="len(loader) // 4") == {"EX120": line}


def test_samples_that_depend_on_each_other_are_not_judged(tmp_path: Path) -> None:
    """A loss over the whole batch is another one for another batch: no mean of means is at fault."""
    text = PROGRAM
    coupled = "loss / own / len(group) + model(batch['picture']).std() * model.two.weight.sum()"
    for key, value in {**CLEAN, "loss": coupled}.items():
        text = text.replace(f"{{{key}}}", value)
    (tmp_path / "train.py").write_text(text)
    report = run_experiments(Start(tmp_path, "train.py"))
    names = {item.rule for item in report.findings} | {item.name for item in report.measures}
    assert not names & {"EX119", "held:EX119"}


@pytest.mark.parametrize(("clear", "shown"), [("optimizer.zero_grad()", True), (SEARCH, False)])
def test_gradients_that_are_cleared_before_their_update(
    tmp_path: Path, clear: str, shown: bool
) -> None:
    text = PROGRAM
    for key, value in {**CLEAN, "clear": clear}.items():
        text = text.replace(f"{{{key}}}", value)
    (tmp_path / "train.py").write_text(text)
    report = run_experiments(Start(tmp_path, "train.py"))
    lines = [text.splitlines()[item.line - 1].strip() for item in report.findings]
    assert lines == ([clear] if shown else []), report.findings
    assert not {item.name for item in report.measures} & {"held:EX119", "held:EX122"}


def test_a_schedule_made_for_samples(tmp_path: Path) -> None:
    (line,) = found(tmp_path, length="3 * len(loader) // 4 * 3").values()
    assert "CosineAnnealingLR" in line
