"""More samples of mask-value-overflows-half."""

BAD = (
    """\
import torch

def empty_mask(size):
    return torch.full((size, size), -1e10, dtype=torch.float16)
""",
    """\
import torch

def hide(scores, mask):
    scores = scores.half()
    scores.masked_fill_(mask, float("-1e30"))
    return scores
""",
)

GOOD = (
    """\
import torch

def attend(q, k, mask):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        scores = q @ k
        return scores.masked_fill(mask, -1e9)
""",
    """\
import torch

def attend(q, k, mask):
    with torch.autocast("cuda"):
        scores = q @ k
        return scores.masked_fill(mask, float("-inf"))
""",
    """\
import torch

def attend(q, k, mask):
    with torch.autocast("cuda"):
        scores = (q @ k).float()
        return scores.masked_fill(mask, -1e9)
""",
    """\
import torch

def attend(q, k, mask):
    scores = q @ k
    return scores.masked_fill(mask, -1e9)
""",
    """\
import torch

def attend(scores, mask):
    return scores.half().masked_fill(mask, -1e4)
""",
)

FIXED = (
    """\
@@ -4 +4 @@
-    return torch.full((size, size), -1e10, dtype=torch.float16)
+    return torch.full((size, size), torch.finfo(torch.float16).min, dtype=torch.float16)
""",
    """\
@@ -5 +5 @@
-    scores.masked_fill_(mask, float("-1e30"))
+    scores.masked_fill_(mask, torch.finfo(scores.dtype).min)
""",
)
