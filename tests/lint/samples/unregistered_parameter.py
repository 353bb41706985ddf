"""More samples of unregistered-parameter."""

BAD = (
    """\
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, n, device):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n)).to(device)
""",
)

GOOD = (
    """\
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, n, device):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n).to(device))
        self.noise = torch.ones(n)
""",
    """\
import torch

class Attack:
    def __init__(self, n, device):
        self.delta = torch.zeros(n, requires_grad=True)
""",
    """\
import torch
from torch import nn

class Latent(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.z = torch.zeros(n, requires_grad=True)
        self.optimizer = torch.optim.Adam([self.z])
""",
    """\
import torch
from torch import nn

class Skip(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n)).float()
""",
    """\
import torch
from torch import nn

class Search(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.alphas = torch.randn(size, requires_grad=True)
        self._arch_parameters = [self.alphas]

    def arch_parameters(self):
        return self._arch_parameters
""",
)

FIXED = (
    """\
@@ -7 +7 @@
-        self.weight = nn.Parameter(torch.ones(n)).to(device)
+        self.weight = nn.Parameter(torch.ones(n).to(device))
""",
)
