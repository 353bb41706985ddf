"""More samples of half-reduction."""

BAD = (
    """\
import torch

def loss(pred, target):
    error = (pred - target).half()
    return torch.mean(error * error)
""",
    """\
import torch

def penalty(weight):
    return weight.to(torch.float16).norm(p=2)
""",
    """\
import torch

def total(x, w):
    with torch.autocast("cuda", dtype=torch.float16):
        h = x @ w
    return h.sum()
""",
)

GOOD = (
    """\
import torch

def count(mask):
    return mask.sum()
""",
    """\
import torch

def step(x, w):
    with torch.autocast("cuda"):
        h = x @ w
        total = h.sum()
    return total
""",
    """\
import torch

def total(x):
    x = x.half()
    with torch.autocast("cuda"):
        return x.sum()
""",
    """\
import torch

def total(x):
    x = x.half()
    x = x.float()
    return x.sum()
""",
    """\
import numpy as np
import torch

def total(x):
    return np.sum(x.half())
""",
)

FIXED = (
    """\
@@ -5 +5 @@
-    return torch.mean(error * error)
+    return torch.mean(error * error, dtype=torch.float32)
""",
    """\
@@ -4 +4 @@
-    return weight.to(torch.float16).norm(p=2)
+    return weight.to(torch.float16).norm(p=2, dtype=torch.float32)
""",
    """\
@@ -6 +6 @@
-    return h.sum()
+    return h.sum(dtype=torch.float32)
""",
)
