"""More samples of ungated-layer-drop."""

BAD = (
    """\
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        if torch.rand(1) < self.drop_path:
            return x
        return x + self.body(x)
""",
)

GOOD = (
    """\
import random
import torch
from torch import nn

class Encoder(nn.Module):
    def forward(self, x):
        for layer in self.layers:
            chance = random.random()
            if not self.training or chance > self.layerdrop:
                x = layer(x)
        return x
""",
)

FIXED = (
    """\
@@ -6 +6 @@
-        if torch.rand(1) < self.drop_path:
+        if self.training and torch.rand(1) < self.drop_path:
""",
)
