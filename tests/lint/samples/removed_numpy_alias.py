"""More samples of removed-numpy-alias."""

GOOD = (
    """\
import numpy as np
import torch

def keep_old_names():
    np.int = np.int_

def mask(n):
    return torch.from_numpy(np.zeros(n, dtype=np.int))
""",
)
