"""More samples of backward-under-autocast."""

BAD = (
    """\
import torch
from torch.amp import autocast

@autocast("cuda")
def step(model, x, scaler):
    loss = model(x)
    scaler.scale(loss).backward()
""",
)

GOOD = (
    """\
import torch

def step(model, x):
    with torch.autocast("cuda"):
        loss = model(x)
        with torch.autocast("cuda", enabled=False):
            loss.backward()
""",
    """\
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def backward(ctx, grad):
        with torch.autocast("cuda"):
            return Other.backward(ctx, grad)
""",
)
