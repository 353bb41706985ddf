"""More samples of bce-under-autocast."""

BAD = (
    """\
import torch
import torch.nn.functional as F

class Detector(torch.nn.Module):
    def forward(self, x, y):
        scores = self.head(x.half())
        return F.binary_cross_entropy(scores, y)
""",
    """\
import torch
from torch import nn

criterion = nn.BCELoss()

def step(model, x, y):
    with torch.autocast("cuda"):
        return criterion(model(x), y)
""",
)

GOOD = (
    """\
import torch
import torch.nn.functional as F

def step(model, x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return F.binary_cross_entropy(torch.sigmoid(model(x)), y)
""",
    """\
import torch
import torch.nn.functional as F

def step(model, x, y):
    with torch.autocast("cuda"):
        p = model(x)
        with torch.autocast("cuda", enabled=False):
            return F.binary_cross_entropy(p.float(), y)
""",
    """\
import torch
import torch.nn.functional as F

def step(model, x, y):
    with torch.autocast("cuda"):
        p = model(x)
    return F.binary_cross_entropy(p.float(), y)
""",
    """\
import torch
import torch.nn.functional as F

def loss(p, y):
    return F.binary_cross_entropy(p, y)
""",
)

FIXED = (
    "",
    "",
)
