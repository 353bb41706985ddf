"""More samples of late-float-cast."""

BAD = (
    """\
import torch

def logits(x, weight):
    x = x.bfloat16()
    weight = weight.to(torch.bfloat16)
    out = x @ weight
    return out.to(torch.float32)
""",
)

GOOD = (
    """\
import torch

def scores(q, k):
    return torch.matmul(q.float(), k.transpose(-2, -1).float())
""",
    """\
import torch

def scores(q, k):
    q, k = q.half(), k.half()
    with torch.autocast("cuda"):
        return torch.matmul(q, k.transpose(-2, -1)).float()
""",
    """\
import torch

def logits(x, weight):
    return (x @ weight).float()
""",
    """\
import torch

def logits(x, weight):
    x = x.half()
    out = x @ weight.half()
    return out
""",
)
