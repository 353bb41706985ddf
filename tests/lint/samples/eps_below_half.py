"""More samples of eps-below-half."""

BAD = (
    """\
import torch

def log_likelihood(x, weight):
    with torch.autocast("cuda"):
        p = torch.sigmoid(x @ weight)
        return torch.log(p + 1e-10)
""",
    """\
import torch

def invert(x):
    x = x.to(torch.float16)
    return 1 / x.clamp(min=1e-12)
""",
    """\
import torch
import torch.nn.functional as F

def embed(x):
    return F.normalize(x.half(), dim=-1)
""",
    """\
import torch

def unit(x):
    x = x.half()
    length = x.norm(dim=-1, keepdim=True)
    return x / (length + 1e-8)
""",
)

GOOD = (
    """\
import torch

def scale(x, weight):
    weight = weight.bfloat16()
    return x / (weight + 1e-8)
""",
    """\
import torch

def scale(x, weight):
    weight = weight.half()
    return x / (weight + 1e-4)
""",
    """\
import torch
import torch.nn.functional as F

def embed(x):
    with torch.autocast("cuda"):
        return F.normalize(x.half(), dim=-1)
""",
    """\
import torch

def scale(x, weight, half=False):
    return x / (weight + 1e-8)
""",
    """\
import torch

def unit(x):
    with torch.autocast("cuda"):
        x = x.half()
        length = x.norm(dim=-1, keepdim=True)
        return x / (length + 1e-8)
""",
)
