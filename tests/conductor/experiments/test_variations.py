"""Autocast, one batch repeated, and the size of the first loss: a program that breaks each, and one that keeps all."""

from __future__ import annotations

from pathlib import Path

from torchstone.conductor.experiments.recording.session import Start
from torchstone.conductor.experiments.running import run_experiments

PROGRAM = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(net.parameters(), {rate})
data = torch.utils.data.TensorDataset(torch.randn(96, 4), torch.randint(1, 3, (96,)))
for _ in range(3):
    for x, y in torch.utils.data.DataLoader(data, 8, shuffle=True):
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            small = net(x) * 1e-4 * {small}
            logits = small / 1e-4 / {small}
            loss = nn.functional.cross_entropy(logits + torch.tensor([{first}, 0.0, 0.0]), y)
        loss.backward()
        optimizer.step()
"""


def rules_of(folder: Path, **values: float) -> tuple[dict[str, int], set[str]]:
    """Lines of what is broken, and what holds."""
    (folder / "train.py").write_text(PROGRAM.format(**values))
    report = run_experiments(Start(folder, "train.py"))
    assert not [gap for gap in report.gaps if gap.reason.id == "experiments.own"]
    held = {item.name.removeprefix("held:") for item in report.measures}
    return {item.rule: item.location.line for item in report.findings}, held


def test_a_program_that_breaks_them(tmp_path: Path) -> None:
    broken, _ = rules_of(tmp_path, rate=1e-9, small=1e-4, first=40.0)
    assert broken == {"EX123": 17, "EX124": 16, "EX125": 15}


def test_a_program_that_keeps_them(tmp_path: Path) -> None:
    broken, held = rules_of(tmp_path, rate=0.5, small=1.0, first=0.0)
    assert not broken
    assert held >= {"EX123", "EX124", "EX125"}
