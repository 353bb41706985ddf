"""More samples of legacy-tensor-constructor."""

BAD = (
    """\
import torch

threshold = torch.Tensor(3)
print(threshold)
""",
)

GOOD = (
    """\
import torch

class Layer(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.Tensor(10))
        self.bias = torch.nn.Parameter(torch.Tensor(n).uniform_())
""",
    """\
import torch

mean = torch.Tensor([0.5, 0.5, 0.5])
""",
    """\
import torch

def is_tensor(x):
    return isinstance(x, torch.Tensor)
""",
    """\
import torch

buffer = torch.Tensor(16).fill_(0.0)
other = torch.Tensor(16)
torch.nn.init.normal_(other)
""",
)

FIXED = (
    """\
@@ -3 +3 @@
-threshold = torch.Tensor(3)
+threshold = torch.tensor(3)
""",
)
