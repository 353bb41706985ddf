"""A project whose scripts cannot be run: its models are built and put under the relations."""

from __future__ import annotations

from pathlib import Path

from torchstone.conductor.experiments.models import run_models
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
