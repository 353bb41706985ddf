"""More samples of tensor-made-on-cpu."""

BAD = (
    """\
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        positions = torch.arange(x.size(1), dtype=torch.long).to(x.device)
        return self.embed(positions)
""",
    """\
import torch

def noise(shape):
    return torch.randn(shape).cuda()
""",
)

GOOD = (
    """\
import torch

def mask(n, x):
    return torch.zeros(n, n).to(x)
""",
    """\
import torch

def draw(n, device, g):
    return torch.randn(n, generator=g).to(device)
""",
    """\
import torch

def load(rows, device):
    return torch.tensor(rows).to(device)
""",
    """\
import torch

def ids(n):
    return torch.arange(n).to('cpu')
""",
)

FIXED = (
    """\
@@ -5 +5 @@
-        positions = torch.arange(x.size(1), dtype=torch.long).to(x.device)
+        positions = torch.arange(x.size(1), dtype=torch.long, device=x.device)
""",
    """\
@@ -4 +4 @@
-    return torch.randn(shape).cuda()
+    return torch.randn(shape, device='cuda')
""",
)
