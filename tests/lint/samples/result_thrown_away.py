"""More samples of result-thrown-away."""

BAD = (
    """\
import torch

def step(group):
    for p in group:
        grad = p.grad
        grad.add(p, alpha=0.1)
        p.data.sub_(grad)
""",
    """\
import torch

def noise(shape, device):
    x = torch.randn(shape)
    x.to(device)
    return x
""",
    """\
import torch

def mask_out(scores, mask):
    scores.masked_fill(mask, 0)
    return scores.softmax(-1)
""",
)

GOOD = (
    """\
import torch

def fit(model, seen, name, device):
    model.to(device)
    seen.add(name)
    scores = torch.zeros(3)
    scores.add_(1)
    scores = scores.clamp(min=0)
    return scores
""",
    """\
import torch

def place(model, x, out):
    model.half()
    x.to
    torch.add(x, 1, out=out)
    x.sub(1, out=out)
""",
)

FIXED = (
    """\
@@ -6 +6 @@
-        grad.add(p, alpha=0.1)
+        grad.add_(p, alpha=0.1)
""",
    "",
    """\
@@ -4 +4 @@
-    scores.masked_fill(mask, 0)
+    scores.masked_fill_(mask, 0)
""",
)
