"""A project whose scripts cannot be run: its models are built and put under the relations."""

from __future__ import annotations

from pathlib import Path

from torchstone.conductor.experiments.models import run_models
from torchstone.conductor.experiments.recording.session import Start
from torchstone.conductor.experiments.running import run_experiments
from torchstone.core.finding import Severity

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, in_channels, num_classes):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, 8, 3)
        self.head = nn.Linear(8, num_classes)

    def forward(self, x):
        features = self.conv(x).mean((2, 3))
        return nn.functional.normalize(self.head(features), dim={axis})
"""


def test_a_model_that_mixes_samples_is_found(tmp_path: Path) -> None:
    for axis, rules in ((1, set()), (0, {"EX116"})):
        root = tmp_path / str(axis)
        root.mkdir()
        (root / "net.py").write_text(NET.replace("{axis}", str(axis)))
        report = run_models(root)
        assert [item.name for item in report.measures] == ["built:net.py:Net"], report.gaps
        assert {item.rule for item in report.findings} == rules
        for item in report.findings:
            assert (item.path, item.severity) == ("net.py", Severity.MEDIUM)
            assert "made inputs" in str(item.evidence) + item.why.say("en")


def test_models_that_cannot_be_built_are_a_gap(tmp_path: Path) -> None:
    text = NET.replace("super().__init__()", "super().__init__()\n        raise ValueError('no')")
    (tmp_path / "net.py").write_text(text.replace("{axis}", "1"))
    report = run_models(tmp_path)
    assert not report.measures
    (gap,) = report.gaps
    assert "ValueError: no" in gap.reason.say("en")


DATA = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    def __init__(self):
        with open("records.bin", "rb") as file:
            self.rows = [int(word) for word in file.read(99).decode("latin-1").split("/")[7:]]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], index % 3


net = nn.Linear(12, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for row, kind in DataLoader(Records(), 64):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(row.float()), kind).backward()
    optimizer.step()
"""


def test_a_program_without_its_data_is_trained_on_made_values(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DATA)
    report = run_experiments(Start(tmp_path, "train.py"))
    values = {item.name: item for item in report.measures}
    assert values["steps"].value == 8, report.gaps
    assert "Records reads what is missing here" in str(values["supplied"].evidence)
    assert not report.findings
