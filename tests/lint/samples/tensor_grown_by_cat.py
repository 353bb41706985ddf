"""More samples of tensor-grown-by-cat."""

BAD = (
    """\
import torch

def gather(parts):
    rows = torch.zeros(0, 4)
    for part in parts:
        rows = torch.vstack((rows, part))
    return rows
""",
)

GOOD = (
    """\
import torch

def predict(model, loader):
    parts = []
    for x in loader:
        parts.append(model(x))
    return torch.cat(parts)
""",
    """\
import torch

def generate(model, ids, n):
    for _ in range(n):
        ids = torch.cat([ids, model(ids)[:, -1:]], dim=1)
    return ids
""",
    """\
import torch

def double(pairs):
    for a, b in pairs:
        a = torch.cat([a, b])
        print(a)
""",
    """\
import torch

def decode(model, ids, state, n):
    for _ in range(n):
        new, state = model(state)
        ids = torch.cat([ids, new], dim=1)
        if ids.size(1) > 99:
            break
    return ids
""",
)
