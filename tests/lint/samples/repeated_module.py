"""More samples of repeated-module."""

BAD = (
    """\
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

layers = nn.ModuleList([Block(8)] * 4)
""",
    """\
from torch import nn

class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        block = nn.Linear(width, width)
        self.blocks = nn.ModuleList([block] * depth)
""",
)

GOOD = (
    """\
from torch import nn

shared = nn.Linear(8, 8)
layers = [shared] * 4
sizes = [8] * 4
acts = [nn.ReLU()] * 4
""",
    """\
from torch import nn

layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])
""",
    """\
from torch import nn

class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        block = nn.Linear(width, width)
        self.first = block
        self.blocks = nn.ModuleList([block] * depth)
""",
    """\
from torch import nn

class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        shared_block = nn.Linear(width, width)
        self.blocks = nn.ModuleList([shared_block] * depth)
""",
    """\
from torch import nn

class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        act = nn.ReLU()
        self.acts = nn.ModuleList([act] * depth)
""",
)

FIXED = (
    """\
@@ -8 +8 @@
-layers = nn.ModuleList([Block(8)] * 4)
+layers = nn.ModuleList([Block(8) for _ in range(4)])
""",
    "",
)
