"""Relations on samples and checkpoints, each on a program that breaks it and on one that keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.conductor.experiments.recording.session import Start
from torchstone.conductor.experiments.running import run_experiments

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, L = torch.randn(40, 7, 5), torch.randint(2, 8, (40,))
L[::10] = 7
X[torch.arange(7)[None, :] >= L[:, None]] = 0
loader = DataLoader(TensorDataset(X, L), 10)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        return nn.functional.normalize(self.out(x), dim={axis})


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(5, 6, batch_first=True)
        self.head = Head()

    def forward(self, x, lengths):
        states, _ = self.cell(x)
        return self.head(pooled(states, lengths))


def pooled(states, lengths):
    return {pooled}


def save(path, model, optimizer, scheduler):
    torch.save({"m": model.state_dict(), "o": optimizer.state_dict(), "s": scheduler.state_dict()}, path)


def restore(path, model, optimizer, scheduler):
    data = torch.load(path)
    model.load_state_dict(data["m"])
    optimizer.load_state_dict(data["o"])
    {restore}


def main():
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for _ in range(2):
        for x, lengths in loader:
            loss = model(x, lengths).square().sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        save("last.pt", model, optimizer, scheduler)


if __name__ == "__main__":
    main()
"""
CLEAN = {
    "axis": "1",
    "pooled": "states[torch.arange(len(states)), lengths - 1]",
    "restore": 'scheduler.load_state_dict(data["s"])',
}
FAULTS = {
    "EX116": ({"axis": "0"}, "def forward(self, x):"),
    "EX117": ({"pooled": "states[:, -1]"}, "def forward(self, x, lengths):"),
    "EX118": ({"restore": "pass"}, "data = torch.load(path)"),
}


def found(folder: Path, **changes: str) -> dict[str, str]:
    text = PROGRAM
    for key, value in {**CLEAN, **changes}.items():
        text = text.replace(f"{{{key}}}", value)
    (folder / "train.py").write_text(text)
    report = run_experiments(Start(folder, "train.py"))
    held = {item.name.removeprefix("held:") for item in report.measures}
    lines = text.splitlines()
    shown = {item.rule: lines[item.line - 1].strip() for item in report.findings}
    assert set(FAULTS) <= held | set(shown), (held, report.gaps)
    return {rule: line for rule, line in shown.items() if rule in FAULTS}


def test_a_clean_program_keeps_them(tmp_path: Path) -> None:
    assert not found(tmp_path)


@pytest.mark.parametrize("rules", [("EX116",), ("EX117", "EX118")], ids="+".join)
def test_a_program_breaks_them(tmp_path: Path, rules: tuple[str, ...]) -> None:
    changes = {key: value for rule in rules for key, value in FAULTS[rule][0].items()}
    assert found(tmp_path, **changes) == {rule: FAULTS[rule][1] for rule in rules}


TOWERS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
tokens = torch.randint(1, 30, (40, 7))
tokens[torch.arange(7)[None, :] >= torch.randint(2, 8, (40,))[:, None]] = 0
tokens[::10] = torch.randint(1, 30, (4, 7))


class Texts(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 6, padding_idx=0)

    def forward(self, tokens):
        seen = (tokens != 0).unsqueeze(-1).float()
        return {pooled}


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Texts(), Texts()

    def forward(self, tokens, others):
        return self.one(tokens) @ self.two(others).T


model = Pairs()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for (batch,) in DataLoader(TensorDataset(tokens), 10):
    loss = nn.functional.cross_entropy(model(batch, batch.flip(0)), torch.arange(10))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("pooled", "broken"),
    [
        ("self.embed(tokens).sum(1) / seen.sum(1)", set()),  # and a table of all against all
        ("self.embed(tokens).mean(1)", {"EX117"}),
    ],
)
def test_padding_that_an_embedding_names(pooled: str, broken: set[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TOWERS.replace("{pooled}", pooled))
    report = run_experiments(Start(tmp_path, "train.py"))
    asked = {"EX116", "EX117"}
    held = {item.name.removeprefix("held:") for item in report.measures} & asked
    assert {item.rule for item in report.findings} & asked == broken
    assert held == asked - broken


def test_data_that_a_real_run_lacks_are_made(tmp_path: Path) -> None:
    """Found by what the program looked for, although its exception is one of its own."""
    (tmp_path / "train.py").write_text(
        "import os, torch\nfrom torch.utils.data import DataLoader, Dataset\n"
        "class Rows(Dataset):\n    def __init__(self, folder):\n"
        "        self.names = [os.path.join(folder, name) for name in sorted(os.listdir(folder))"
        " if name.endswith('.npy')] if os.path.isdir(folder) else []\n"
        "        if not self.names:\n            raise RuntimeError(f'No rows in {folder}')\n"
        "    def __len__(self):\n        return len(self.names)\n"
        "    def __getitem__(self, index):\n        import numpy\n"
        "        return torch.from_numpy(numpy.load(self.names[index])).float().flatten()[:4]\n"
        "model = torch.nn.Linear(4, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for batch in DataLoader(Rows('data/rows'), 64):\n"
        "    optimizer.zero_grad()\n    model(batch).square().mean().backward()\n    optimizer.step()\n"
    )
    report = run_experiments(Start(tmp_path, "train.py"))
    steps = [item.value for item in report.measures if item.name == "steps"]
    assert steps[0] > 0
    assert not [item for item in report.findings if item.severity.name == "HIGH"]


STORED = """
import numpy as np, random, torch
from torch.utils.data import DataLoader, Dataset

def flip(box):
    if random.random() < 0.5:
        {write}
    return box

class Boxes(Dataset):
    def __init__(self):
        self.boxes = [np.random.rand(4).astype(np.float32) for _ in range(16)]
        self.cache = {{}}
        self.scaled = np.zeros((16, 4), np.float32)
        self.done = np.zeros(16, bool)
    def __len__(self):
        return 16
    def __getitem__(self, index):
        if not self.done[index]:
            self.scaled[index], self.done[index] = self.boxes[index] * 2, True
        return flip(torch.from_numpy(self.boxes[index]))

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    for batch in DataLoader(Boxes(), 8):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("write", "lines"), [("box[0] = 1 - box[0]", [7]), ("box = 1 - box", [])], ids=["bad", "good"]
)
def test_reading_leaves_the_stored_data_as_they_are(
    write: str, lines: list[int], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(STORED.format(write=write))
    report = run_experiments(Start(tmp_path, "train.py"))
    assert [item.line for item in report.findings if item.rule == "EX121"] == lines
    assert [item.rule for item in report.findings if item.rule != "EX121"] == []
