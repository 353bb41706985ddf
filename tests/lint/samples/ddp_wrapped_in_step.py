"""More samples of ddp-wrapped-in-step."""

BAD = (
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(net, loader, optimizer):
    for x, y in loader:
        model = DDP(net)
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
""",
)

GOOD = (
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(net, loader, optimizer):
    model = DDP(net)
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def sweep(widths, x):
    for width in widths:
        net = torch.nn.Linear(width, width)
        model = DDP(net)
        model(x).sum().backward()
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def wrap(models):
    for name in models:
        models[name] = DDP(models[name])
""",
)
