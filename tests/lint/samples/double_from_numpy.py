"""More samples of double-from-numpy."""

BAD = (
    """\
import numpy as np
import torch

def sample(model):
    noise = np.random.normal(size=16)
    x = torch.tensor(noise)
    return model(x)
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

def one_hot(model, index, size):
    row = np.zeros((1, size), np.float32)
    row[0][index] = 1
    return model(torch.from_numpy(row))

def shift(model, image):
    return model(image - torch.tensor(np.array([0.5, 0.5], np.float32)))
""",
    """\
import numpy as np
import torch

def calibrate(errors, targets):
    scales = np.zeros(3)
    for i in range(3):
        scales[i] = np.std(errors[i] / targets[i])
    return torch.tensor(scales)
""",
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
@@ -6 +6 @@
-    x = torch.tensor(noise)
+    x = torch.tensor(noise, dtype=torch.float32)
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
