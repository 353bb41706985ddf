"""More samples of channels-first-under-amp."""

GOOD = (
    """\
import torch
from torch import nn

net = nn.Conv2d(3, 64, 3).to(memory_format=torch.channels_last)

def train(model, loader, opt, criterion):
    for x, y in loader:
        with torch.autocast('cuda', dtype=torch.bfloat16):
            loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
""",
    """\
import torch
from torch import nn

net = nn.Conv2d(3, 64, 3)

def train(model, loader, opt, criterion):
    for x, y in loader:
        with torch.autocast('cpu', dtype=torch.bfloat16):
            loss = criterion(model(x), y)
        loss.backward()
        opt.step()
""",
    """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 3)

    def forward(self, x):
        with torch.autocast('cuda'):
            return self.conv(x)
""",
)
