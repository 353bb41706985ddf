"""More samples of inverted-python-bool."""

BAD = (
    """\
from torch import nn

class Decoder(nn.Module):
    def forward(self, x):
        greedy = ~self.training
        return self.decode(x, greedy)
""",
    """\
import torch
from torch import nn

class Noise(nn.Module):
    def forward(self, x):
        if ~self.training and x.dim() > 1:
            return x
        return x + torch.randn_like(x)
""",
    """\
import torch

device = "cpu" if ~torch.cuda.is_available() else "cuda"
""",
    """\
import torch

def attend(x, causal=False):
    return x if ~causal else x.tril()
""",
)

GOOD = (
    """\
import torch

def keep(x, mask, limit: int):
    rest = ~mask
    if ~limit:
        return x[rest]
    return x[~(x == 0)]
""",
)

FIXED = (
    """\
@@ -5 +5 @@
-        greedy = ~self.training
+        greedy = not self.training
""",
    """\
@@ -6 +6 @@
-        if ~self.training and x.dim() > 1:
+        if not self.training and x.dim() > 1:
""",
    """\
@@ -3 +3 @@
-device = "cpu" if ~torch.cuda.is_available() else "cuda"
+device = "cpu" if not torch.cuda.is_available() else "cuda"
""",
    """\
@@ -4 +4 @@
-    return x if ~causal else x.tril()
+    return x if not causal else x.tril()
""",
)
