"""More samples of compared-to-nan."""

BAD = (
    """\
import numpy as np
import torch

def keep(loss):
    return loss.item() != np.nan
""",
)

GOOD = (
    """\
import math
import torch

def guard(loss):
    if math.isnan(loss.item()) or torch.isnan(loss) or loss != loss:
        raise RuntimeError("diverged")
""",
    """\
import torch

best = float("nan")
missing = best is torch.nan
worst = float("inf")
if best == worst:
    best = 0.0
""",
)
