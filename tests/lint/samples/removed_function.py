"""More samples of removed-function."""

BAD = (
    """\
import torch

def solve(a, b):
    return torch.solve(b, a).solution
""",
    """\
from torch import lstsq

def fit(a, b):
    return lstsq(b, a)
""",
    """\
import torch

def spectrum(x):
    return torch.fft(x, 2)
""",
)

GOOD = (
    """\
import torch

def spectrum(a):
    return torch.linalg.eigh(a)
""",
    """\
import torch

def solve(a, b):
    if hasattr(torch, 'solve'):
        return torch.solve(b, a).solution
    return torch.linalg.solve(a, b)
""",
    """\
import numpy
import torch

def rank(a):
    return numpy.linalg.matrix_rank(a)
""",
    """\
import torch

def solve(model, b):
    return model.solve(b)
""",
    """\
import torch
import torch.fft

def spectrum(x):
    return torch.fft.fft(x)
""",
)

FIXED = (
    """\
@@ -4 +4 @@
-    return torch.solve(b, a).solution
+    return torch.linalg.solve(a, b)
""",
    "",
    "",
)
