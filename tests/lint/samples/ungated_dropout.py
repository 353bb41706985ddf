"""More samples of ungated-dropout."""

BAD = (
    """\
import torch
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x + nn.functional.dropout2d(self.conv(x), self.p, inplace=False)
""",
)

GOOD = (
    """\
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def forward(self, x):
        x = F.dropout(x, 0.5, self.training)
        return F.dropout(x, p=0.1, training=True)
""",
    """\
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def forward(self, x):
        if self.training and self.p > 0:
            x = F.dropout(x, self.p)
        return x
""",
    """\
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def forward(self, x):
        p = self.p if self.training else 0.0
        return F.dropout(x, p=p)
""",
    """\
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def forward(self, x):
        if not self.training:
            return x
        return F.dropout(x, self.p)
""",
    """\
import torch.nn as nn
import torch.nn.functional as F

def drop(x, p):
    return F.dropout(x, p)
""",
    """\
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def forward(self, inputs):
        x, dropout_switch = inputs
        if self.p > 0 and dropout_switch:
            x = F.dropout(x, self.p)
        return x
""",
)

FIXED = (
    """\
@@ -6 +6 @@
-        return x + nn.functional.dropout2d(self.conv(x), self.p, inplace=False)
+        return x + nn.functional.dropout2d(self.conv(x), self.p, inplace=False, training=self.training)
""",
)
