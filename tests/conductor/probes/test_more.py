"""Properties that need ranks, halves, experts or a second call: wrong line found, right twin left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.conductor.probes import run
from torchstone.conductor.probes.run import Subject, probe

RANKS = """
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))

def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.Generator().manual_seed(rank)
    for step in range(3):
        optimizer.zero_grad()
        for part in range(2):
            x = torch.randn(6, 8, generator=data)
            target = torch.randint(0, 3, (6,), generator=data)
            target[: 2] = -100
            (F.cross_entropy(model(x), target) / 2).backward()
        flat = torch.cat([p.grad.flatten() for p in model.parameters()])
        dist.all_reduce(flat)
        flat /= 2
        at = 0
        for p in model.parameters():
            p.grad.copy_(flat[at : at + p.numel()].view_as(p))
            at += p.numel()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        numbers = torch.ones(4) * step
        dist.all_reduce(numbers)

if __name__ == "__main__":
    main()
"""
RANK_FAULTS = {
    "PR402": ("        dist.all_reduce(flat)\n", ""),
    "PR405": ("torch.manual_seed(0)", "torch.manual_seed(rank)"),
    "PR406": ("target[: 2] = -100", "target[: 1 + rank] = -100"),
    "PR408": ("/ 2).backward()\n", "/ 2).backward()\n            dist.all_reduce(torch.cat([p.grad.flatten() for p in model.parameters()]))\n"),
}  # fmt: skip

HALF = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

def rotated(x, positions):
    angles = positions.float()[:, None] * torch.tensor([1.0, 0.1])
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat([x[..., :2] * cos - x[..., 2:] * sin, x[..., :2] * sin + x[..., 2:] * cos], -1)

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, mask):
        at = torch.arange(x.shape[1])
        q, k = self.q(x), self.k(x)
        q = torch.cat([q[..., :4], rotated(q[..., 4:], at)], -1)
        k = torch.cat([k[..., :4], rotated(k[..., 4:], at)], -1)
        scores = (q @ k.transpose(-1, -2)).float() / 8**0.5
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        return x + scores.softmax(-1).to(x.dtype) @ self.v(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 8, padding_idx=0)
        self.block = Attention()
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(8, 12)

    def forward(self, ids):
        mask = (ids != 0)[:, None, :] & torch.ones(ids.shape[1], ids.shape[1]).tril().bool()
        x = checkpoint(self.block, self.embed(ids), mask, use_reentrant=False)
        return self.head(self.drop(x))

def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Net().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.randint(1, 12, (5, 9))
    ids[0, 6:] = 0
    targets = ids[:, 1:].masked_fill(ids[:, 1:] == 0, -100)
    for step in range(3):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(ids)[:, :-1]
            loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
        loss.backward()
        optimizer.step()

if __name__ == "__main__":
    main()
"""
HALF_FAULTS = {
    "PR211": ("k = torch.cat([k[..., :4], rotated(k[..., 4:], at)], -1)", "k = torch.cat([rotated(k[..., 4:], at), k[..., :4]], -1)"),
    "PR221": ("torch.finfo(scores.dtype).min", 'float("-inf")'),
}  # fmt: skip

EXPERTS = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 8, 8) * 0.3)

    def forward(self, rows, sizes):
        return torch.cat([part @ self.w[e] for e, part in enumerate(rows.split(sizes))])

class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 8))
        self.register_buffer("bias", torch.zeros(4), persistent=True)

    def forward(self, x):
        probs = F.linear(x, self.weight).softmax(-1)
        choice = probs + self.bias
        idx = choice.topk(2, dim=-1).indices
        weights = probs.gather(-1, idx)
        return idx, weights / weights.sum(-1, keepdim=True)

    @torch.no_grad()
    def balance(self, idx):
        load = torch.bincount(idx.flatten(), minlength=4).float()
        self.bias += 0.05 * torch.sign(load.mean() - load)

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.experts = Router(), Experts()

    def forward(self, x):
        flat = x.reshape(-1, 8)
        idx, weights = self.router(flat)
        if self.training:
            self.router.balance(idx)
        order = idx.flatten().argsort(stable=True)
        sizes = torch.bincount(idx.flatten(), minlength=4).tolist()
        token = order // 2
        y = self.experts(flat[token], sizes) * weights.flatten()[order, None]
        out = torch.zeros_like(flat)
        out = out.index_add(0, token, y)
        return out.view_as(x)

def main():
    torch.manual_seed(0)
    model = Layer()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(4, 16, 8)
    for step in range(4):
        optimizer.zero_grad()
        F.mse_loss(model(x), x).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(x)

if __name__ == "__main__":
    main()
"""
EXPERT_FAULTS = {
    "PR213": ("persistent=True", "persistent=False"),
    "PR301": ("weights / weights.sum(-1, keepdim=True)", "weights"),
    "PR302": ("out = out.index_add(0, token, y)", "out[token] = y"),
    "PR306": ("torch.sign(load.mean() - load)", "torch.sign(load - load.mean())"),
}
CASES = [(text, faults, rule, world) for text, faults, world in (
    (RANKS, RANK_FAULTS, 2), (HALF, HALF_FAULTS, 1), (EXPERTS, EXPERT_FAULTS, 1),
) for rule in faults]  # fmt: skip


@pytest.fixture(autouse=True)
def no_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_TRIAL_SECONDS", 0.0)


def rules_of(folder: Path, text: str, world: int) -> set[str]:
    (folder / "train.py").write_text(text, "utf-8")
    report = probe(Subject(folder, "train.py", (), world=world), try_fixes=False)
    assert not report.gaps, report.gaps
    return {item.rule for item in report.findings}


@pytest.mark.parametrize(("text", "world"), [(RANKS, 2), (HALF, 1), (EXPERTS, 1)])
def test_healthy_projects_are_left_alone(text: str, world: int, tmp_path: Path) -> None:
    assert rules_of(tmp_path, text, world) == set()


@pytest.mark.parametrize(("text", "faults", "rule", "world"), CASES)
def test_a_fault_is_found(
    text: str, faults: dict[str, tuple[str, str]], rule: str, world: int, tmp_path: Path
) -> None:
    right, wrong = faults[rule]
    assert text.count(right) == 1
    assert rule in rules_of(tmp_path, text.replace(right, wrong), world)


def test_a_long_loop_is_left_for_what_comes_after_it(tmp_path: Path) -> None:
    text = EXPERTS.replace("range(4)", "range(10**9)").replace(
        "        model(x)\n", '        model(x)\n    torch.save(model.state_dict(), "end.pt")\n'
    )
    assert rules_of(tmp_path, text, 1) == set()
    assert (tmp_path / "end.pt").exists()
