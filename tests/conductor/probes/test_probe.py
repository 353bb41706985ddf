"""Each property on a tiny project: the wrong line is found, its repaired twin is left alone."""

from pathlib import Path

import pytest

from torchstone.conductor.probes.run import Subject, probe

MODEL = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(16, 20)

    def forward(self, tokens):
        x = self.embed(tokens)
        n = tokens.shape[1]
        scores = self.q(x) @ self.k(x).transpose(-1, -2) / 16 ** 0.5
        hidden = torch.ones(n, n).triu(diagonal=1).bool()
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        return self.head(self.drop(weights @ self.v(x)))

def evaluate(model, tokens):
    model.eval()
    with torch.no_grad():
        model(tokens)
    model.train()

def main():
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tokens = torch.randint(0, 20, (4, 9))
    for step in range(4):
        for part in range(2):
            logits = model(tokens)
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
            (loss / 2).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        optimizer.step()
        optimizer.zero_grad()
        evaluate(model, tokens)

if __name__ == "__main__":
    main()
"""
FAULTS = {
    "PR101": ("(model.parameters(), 0.01)", "(model.head.parameters(), 0.01)"),
    "PR102": ("        optimizer.zero_grad()\n", ""),
    "PR103": ("(loss / 2).backward()", "loss.backward()"),
    "PR104": ("    model.eval()\n", ""),
    "PR105": ("        model(tokens)\n    model.train()\n", "        model(tokens)\n"),
    "PR106": ("    with torch.no_grad():\n        model(tokens)\n", "    model(tokens)\n"),
    "PR108": ("SGD(model.parameters()", "SGD(model.head.parameters()"),
    "PR201": ("triu(diagonal=1)", "triu(diagonal=2)"),
    "PR203": ("x = self.embed(tokens)", "x = self.embed(tokens)\n        x = x - x.mean(0)"),
    "PR204": ("self.drop(weights", "F.dropout(weights"),
    "PR207": ("/ 16 ** 0.5", "/ 4 ** 0.5"),
    "PR210": ('float("-inf")', "-8.0"),
}


def rules_of(folder: Path, text: str) -> dict[str, int]:
    (folder / "train.py").write_text(text, "utf-8")
    report = probe(Subject(folder, "train.py", ()))
    assert not report.gaps
    return {item.rule: item.line for item in report.findings}


def test_a_healthy_project_is_left_alone(tmp_path: Path) -> None:
    assert rules_of(tmp_path, MODEL) == {}


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_is_found(rule: str, tmp_path: Path) -> None:
    right, wrong = FAULTS[rule]
    assert MODEL.count(right) == 1
    assert rule in rules_of(tmp_path, MODEL.replace(right, wrong))


def test_the_edit_that_is_offered_was_tried(tmp_path: Path) -> None:
    right, wrong = FAULTS["PR201"]
    (tmp_path / "train.py").write_text(MODEL.replace(right, wrong), "utf-8")
    (finding,) = probe(Subject(tmp_path, "train.py", ())).findings
    assert finding.fix is not None
    assert [edit.text for edit in finding.fix.edits] == ["1"]
