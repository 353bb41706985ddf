"""More samples of modules-in-plain-list."""

BAD = (
    """\
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = {"a": nn.Linear(8, 2), "b": nn.Linear(8, 3)}
""",
    """\
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 3, 3)

class Net(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = []
        for _ in range(depth):
            self.blocks.append(Block())
""",
)

GOOD = (
    """\
from torch import nn

class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        layers = [nn.Linear(8, 8) for _ in range(depth)]
        self.layers = nn.Sequential(*layers)
        self.activations = [nn.ReLU(), nn.GELU()]
""",
    """\
from torch import nn

class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = [nn.Linear(8, 8) for _ in range(depth)]
        for i, layer in enumerate(self.layers):
            self.add_module(f"layer{i}", layer)
""",
    """\
from torch import nn

class Zoo:
    def __init__(self):
        self.layers = [nn.Linear(8, 8), nn.Linear(8, 4)]
""",
    """\
from torch import nn

class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = []
        for _ in range(depth):
            self.layers.append(nn.Linear(8, 8))
        self.layers = nn.ModuleList(self.layers)
""",
)

FIXED = (
    """\
@@ -6 +6 @@
-        self.heads = {"a": nn.Linear(8, 2), "b": nn.Linear(8, 3)}
+        self.heads = nn.ModuleDict({"a": nn.Linear(8, 2), "b": nn.Linear(8, 3)})
""",
    """\
@@ -11 +11 @@
-        self.blocks = []
+        self.blocks = torch.nn.ModuleList([])
""",
)
