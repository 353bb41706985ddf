"""More samples of double-from-numpy."""

BAD = (
    """\
import numpy as np
import torch

noise = np.random.normal(size=16)
x = torch.tensor(noise)
""",
    """\
import numpy as np
import torch
from torch import nn

class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(np.log(1 / 0.07)))
""",
    """\
import numpy as np
import torch

rng = np.random.default_rng(0)

def batch(model):
    # double the batch for the second view
    x = torch.from_numpy(rng.standard_normal((16, 3)))
    return model(x)
""",
)

GOOD = (
    """\
import numpy as np
import torch

x = torch.from_numpy(np.random.rand(8, 3)).float()
""",
    """\
import numpy as np
import torch

x = torch.tensor(np.random.rand(8, 3), dtype=torch.float32)
""",
    """\
import numpy as np
import torch

x = torch.from_numpy(np.random.rand(8, 3).astype(np.float32))
""",
    """\
import numpy as np
import torch

def batch(device):
    x = torch.from_numpy(np.random.rand(8, 3))
    return x.to(device, torch.float32)
""",
    """\
import numpy as np
import torch

torch.set_default_dtype(torch.float64)
x = torch.from_numpy(np.random.rand(8, 3))
""",
    """\
import numpy as np
import torch

x = torch.from_numpy(np.arange(8))
y = torch.from_numpy(np.array([1, 2, 3]))
z = torch.from_numpy(np.array(image))
""",
    """\
import numpy as np
import torch

rng = np.random.default_rng(0)
x = torch.from_numpy(rng.random((8, 3), dtype=np.float32))
y = torch.from_numpy(rng.integers(0, 8, size=3))
z = torch.tensor(np.random.uniform(0.5, 1.5))
other = torch.from_numpy(source.normal(size=3))
""",
)

FIXED = (
    """\
@@ -5 +5 @@
-x = torch.tensor(noise)
+x = torch.tensor(noise, dtype=torch.float32)
""",
    """\
@@ -8 +8 @@
-        self.scale = nn.Parameter(torch.tensor(np.log(1 / 0.07)))
+        self.scale = nn.Parameter(torch.tensor(np.log(1 / 0.07), dtype=torch.float32))
""",
    """\
@@ -8 +8 @@
-    x = torch.from_numpy(rng.standard_normal((16, 3)))
+    x = torch.from_numpy(rng.standard_normal((16, 3))).float()
""",
)
