"""More samples of mean-of-integers."""

BAD = (
    """\
import torch

ages = torch.tensor([31, 42, 56])
print(torch.mean(ages))
""",
    """\
import torch

def spread(n):
    steps = torch.arange(len(n))
    return steps.std()
""",
)

GOOD = (
    """\
import numpy as np
import torch

def accuracy(logits, labels):
    return (np.argmax(logits, axis=-1) == labels).mean()
""",
    """\
import torch

def accuracy(predictions, labels):
    return (predictions == labels).mean()
""",
    """\
import torch

ages = torch.tensor([31, 42, 56], dtype=torch.float32)
print(ages.mean())
""",
    """\
import torch

ages = torch.tensor([31, 42, 56])
print(ages.mean(dtype=torch.float32), ages.sum(), ages.median())
""",
    """\
import torch

def middle(x):
    i = torch.arange(0, 1, 0.1)
    return i.mean()
""",
)

FIXED = (
    """\
@@ -4 +4 @@
-print(torch.mean(ages))
+print(torch.mean(ages.float()))
""",
    """\
@@ -5 +5 @@
-    return steps.std()
+    return steps.float().std()
""",
)
