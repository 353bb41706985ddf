"""More samples of softmax-on-half."""

BAD = (
    """\
import torch

def attend(q, k):
    q, k = q.bfloat16(), k.bfloat16()
    with torch.autocast("cpu"):
        scores = q.matmul(k)
        return scores.log_softmax(-1)
""",
    """\
import torch
import torch.nn.functional as F

def attend(scores, v, small):
    if small:
        scores = scores.half()
    return F.softmax(scores, dim=-1) @ v
""",
)

GOOD = (
    """\
import torch
import torch.nn.functional as F

def attend(scores, v):
    scores = scores.half()
    return F.softmax(scores, dim=-1, dtype=torch.float32).to(v.dtype) @ v
""",
    """\
import torch
import torch.nn.functional as F

def attend(scores, v):
    scores = scores.half()
    with torch.autocast("cuda"):
        return F.softmax(scores, dim=-1) @ v
""",
    """\
import torch
import torch.nn.functional as F

def attend(scores, v):
    return F.softmax(scores.half().float(), dim=-1) @ v
""",
    """\
import torch

@torch.inference_mode()
def answer(scores):
    return scores.half().softmax(-1)
""",
)

FIXED = (
    """\
@@ -7 +7 @@
-        return scores.log_softmax(-1)
+        return scores.log_softmax(-1, dtype=torch.float32)
""",
    """\
@@ -7 +7 @@
-    return F.softmax(scores, dim=-1) @ v
+    return F.softmax(scores, dim=-1, dtype=torch.float32) @ v
""",
)
