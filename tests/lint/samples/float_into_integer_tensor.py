"""More samples of float-into-integer-tensor."""

BAD = (
    """\
import torch

def positions(n):
    steps = torch.arange(10)
    steps /= 10
    return steps
""",
    """\
import torch

def smooth(labels):
    target = labels.long()
    return target.masked_fill(labels > 3, 0.1)
""",
)

GOOD = (
    """\
import torch

def positions():
    steps = torch.arange(10)
    return steps / 10
""",
    """\
import torch

def positions():
    steps = torch.arange(10, dtype=torch.float32)
    steps /= 10
    return steps
""",
    """\
import torch

def ignore(labels):
    target = labels.long()
    target[labels < 0] = -100
    target += 1
    return target
""",
    """\
import torch

def weights(n):
    w = torch.zeros(n)
    w[0] = 0.5
    return w
""",
    """\
import torch

def kernel(dtype):
    k = torch.tensor([1, 2, 1], dtype=dtype)
    k /= 4.0
    return k
""",
)
