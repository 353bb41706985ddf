"""More samples of misspelt-torch-name."""

BAD = (
    """\
import torch

def fit(target, size):
    target = target.unsequeeze(1)
    return torch.nn.functional.interpolate(target, size)
""",
)

GOOD = (
    """\
import torch

def fit(target, size):
    target = target.unsqueeze(1)
    return torch.nn.functional.interpolate(target, size)
""",
)
