"""More samples of in-place-on-leaf."""

BAD = (
    """\
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.empty(3))
        self.w.uniform_(-1, 1)
""",
    """\
import torch

def decay(model):
    for p in model.parameters():
        p.mul_(0.99)
""",
)

GOOD = (
    """\
import torch

w = torch.randn(3, requires_grad=True)
(w * x).sum().backward()
with torch.no_grad():
    w -= 0.1 * w.grad
w.grad.zero_()
w.data.clamp_(0, 1)
""",
    """\
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.empty(3), requires_grad=False)
        self.w.fill_(1)
        nn.init.normal_(self.w)
""",
    """\
import torch

@torch.no_grad()
def decay(model):
    shrink(model)

def shrink(model):
    for p in model.parameters():
        p.mul_(0.99)
""",
    """\
import torch

w = torch.randn(3, requires_grad=True)
w = w * 2
w += 1
""",
    """\
import torch

def average(model, n):
    for p in model.parameters():
        p.requires_grad = False
        p.div_(n)
""",
)
