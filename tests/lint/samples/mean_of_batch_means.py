"""More samples of mean-of-batch-means."""

BAD = (
    """\
import torch
import torch.nn.functional as F

def test(model, loader):
    test_loss = 0
    with torch.no_grad():
        for x, y in loader:
            test_loss += F.nll_loss(model(x), y).item()
    test_loss /= len(loader.dataset)
    return test_loss
""",
)

GOOD = (
    """\
import torch
import torch.nn.functional as F

def test(model, loader):
    total = 0
    with torch.no_grad():
        for x, y in loader:
            total += F.nll_loss(model(x), y, reduction="sum").item()
    return total / len(loader.dataset)
""",
    """\
import torch
from torch import nn

criterion = nn.CrossEntropyLoss()

@torch.no_grad()
def evaluate(model, loader):
    total = 0.0
    for x, y in loader:
        total += criterion(model(x), y).item() * x.size(0)
    return total / len(loader.dataset)
""",
    """\
import torch
from torch import nn
from torch.utils.data import DataLoader

criterion = nn.CrossEntropyLoss()

@torch.no_grad()
def evaluate(model, data):
    loader = DataLoader(data, batch_size=8, drop_last=True)
    total = 0.0
    for x, y in loader:
        total += criterion(model(x), y).item()
    return total / len(loader)
""",
)
