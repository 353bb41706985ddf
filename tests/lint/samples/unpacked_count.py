"""More samples of unpacked-count-differs."""

BAD = (
    """\
import torch

class Bias(torch.nn.Module):
    def forward(self, i, j):
        h, i, j, device = self.heads, self.device
        return h, device
""",
)

GOOD = (
    """\
import torch

def split(x, both):
    if both:
        return x, x
    return x

def run(x):
    a, b = split(x, True)
    return a, b
""",
)
