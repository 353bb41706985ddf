"""Small healthy projects, and one wrong line for each property; faults that do not hide each other share a run."""

from __future__ import annotations

from dataclasses import dataclass

Faults = dict[str, tuple[str, str]]
"""For each rule, text that stands once in the project and its wrong form."""


@dataclass(frozen=True)
class Sample:
    """A project of one script."""

    text: str
    faults: Faults
    together: tuple[tuple[str, ...], ...]
    """Rules whose faults are planted at the same time."""
    ranks: int = 1

    def with_faults(self, rules: tuple[str, ...]) -> str:
        text = self.text
        for rule in rules:
            right, wrong = self.faults[rule]
            assert text.count(right) == 1, rule
            text = text.replace(right, wrong)
        return text


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

TEACHER = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.norm = nn.Linear(8, width), nn.BatchNorm1d(width)
        self.last = nn.Linear(width, 3)

    def forward(self, x):
        hidden = torch.relu(self.norm(self.first(x)))
        return self.last(hidden), hidden

class Bridge(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = nn.Linear(4, 16)

    def forward(self, x):
        return self.map(x)

def distill(student, bridge, teacher, optimizer):
    student.train()
    teacher.eval()
    for step in range(6):
        x = torch.randn(16, 8)
        with torch.no_grad():
            wanted, features = teacher(x)
        given, own = student(x)
        loss = F.mse_loss(given, wanted) + F.mse_loss(bridge(own), features)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def main():
    torch.manual_seed(0)
    teacher, student, bridge = Net(16), Net(4), Bridge()
    optimizer = torch.optim.SGD(teacher.parameters(), lr=0.1)
    for step in range(3):
        loss = teacher(torch.randn(16, 8))[0].pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    parameters = [*student.parameters(), *bridge.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    distill(student, bridge, teacher, optimizer)

main()
"""
TEACHER_FAULTS: Faults = {
    "PR108": ("[*student.parameters(), *bridge.parameters()]", "list(student.parameters())"),
    "PR109": ("    teacher.eval()\n", "    teacher.train()\n"),
}

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
    "PR409": ("        dist.all_reduce(numbers)\n", "        for at in range(4):\n            dist.all_reduce(numbers[at])\n"),
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
        self.drop = nn.Dropout(0.1)

    def forward(self, x, mask):
        at = torch.arange(x.shape[1])
        q, k = self.q(x), self.k(x)
        q = torch.cat([q[..., :4], rotated(q[..., 4:], at)], -1)
        k = torch.cat([k[..., :4], rotated(k[..., 4:], at)], -1)
        scores = (q @ k.transpose(-1, -2)).float() / 8**0.5
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        return x + self.drop(scores.softmax(-1)).to(x.dtype) @ self.v(x)

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
    "PR117": ("positions.float()[:, None] * torch.tensor([1.0, 0.1])",
              "positions.to(x.dtype)[:, None] * torch.tensor([1.0, 0.1]).to(x.dtype)"),
    "PR118": ("use_reentrant=False", "use_reentrant=False, preserve_rng_state=False"),
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
SAMPLES = {
    "model": Sample(MODEL, FAULTS, (
        ("PR101", "PR104", "PR201", "PR207"),
        ("PR103", "PR105", "PR203", "PR204"),
        ("PR102", "PR106", "PR108"),
        ("PR201", "PR210"),
    )),
    "teacher": Sample(TEACHER, TEACHER_FAULTS, (("PR108", "PR109"),)),
    "ranks": Sample(RANKS, RANK_FAULTS, (("PR405", "PR406", "PR408", "PR409"), ("PR402",)), ranks=2),
    "half": Sample(HALF, HALF_FAULTS, (("PR117", "PR118", "PR211", "PR221"),)),
    "experts": Sample(EXPERTS, EXPERT_FAULTS, (("PR213", "PR301", "PR302", "PR306"),)),
}  # fmt: skip
