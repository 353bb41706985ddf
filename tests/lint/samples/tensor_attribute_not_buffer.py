"""More samples of tensor-attribute-not-buffer."""

BAD = (
    """\
import torch
from torch import nn
import torch.nn.functional as F

class Blur(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = torch.tensor([1.0, 2.0, 1.0]).view(1, 1, 3)

    def forward(self, x):
        return F.conv1d(x, self.kernel)
""",
    """\
import torch
from torch import nn

class Positions(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        pe = torch.zeros(length, width)
        pe[:, 0] = torch.arange(length)
        self.pe = pe.unsqueeze(0)

    def forward(self, x):
        return x + self.pe[:, : x.size(1)]
""",
)

GOOD = (
    """\
import torch
from torch import nn

class Focal(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.ones(n)

    def forward(self, x):
        return (x * self.weight.to(x.device)).sum()
""",
    """\
import torch
from torch import nn

class Depth(nn.Module):
    def __init__(self, n):
        super().__init__()
        rates = torch.linspace(0, 0.1, n)
        self.rates = torch.linspace(0, 0.1, n)
        self.layers = nn.ModuleList(nn.Dropout(float(r)) for r in rates)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
    """\
import torch
from torch import nn

class Cache(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.last = torch.zeros(n)

    def forward(self, x):
        out = x + self.last
        self.last = x.detach()
        return out
""",
    """\
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = torch.tensor(rate)

    def forward(self, x):
        return x * self.rate
""",
)

FIXED = (
    """\
@@ -8 +8 @@
-        self.kernel = torch.tensor([1.0, 2.0, 1.0]).view(1, 1, 3)
+        self.register_buffer("kernel", torch.tensor([1.0, 2.0, 1.0]).view(1, 1, 3), persistent=False)
""",
    """\
@@ -9 +9 @@
-        self.pe = pe.unsqueeze(0)
+        self.register_buffer("pe", pe.unsqueeze(0), persistent=False)
""",
)
