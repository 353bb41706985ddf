"""More samples of log-of-softmax."""

BAD = (
    """\
import torch

def log_probability(logits):
    return torch.softmax(logits, dim=-1).log()
""",
    """\
import torch

def log_probability(logits):
    return torch.log(torch.sigmoid(logits) + 1e-8)
""",
    """\
import torch
import torch.nn.functional as F

def log_probability(logits):
    return torch.log(torch.sigmoid(logits))
""",
    """\
import torch
import torch.nn.functional as F

def nll(logits, y):
    p = F.softmax(logits, dim=-1)
    return -torch.log(p + 1e-8).gather(1, y).mean()
""",
)

GOOD = (
    """\
import torch.nn.functional as F

def log_probability(logits):
    return F.log_softmax(logits, dim=-1)
""",
    """\
import torch
import torch.nn.functional as F

def entropy(logits):
    p = F.softmax(logits, dim=-1)
    return -(p * torch.log(p)).sum(-1)
""",
    """\
import numpy as np
from scipy.special import softmax
import torch

def log_probability(logits):
    return np.log(softmax(logits))
""",
    """\
import torch

def log_odds(x):
    return torch.log(1 - torch.sigmoid(x).mean())
""",
)

FIXED = (
    """\
@@ -4 +4 @@
-    return torch.softmax(logits, dim=-1).log()
+    return torch.log_softmax(logits, dim=-1)
""",
    "",
    """\
@@ -5 +5 @@
-    return torch.log(torch.sigmoid(logits))
+    return F.logsigmoid(logits)
""",
    "",
)
