"""More samples of layer-made-in-forward."""

BAD = (
    """\
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        drop = torch.nn.Dropout(0.1)
        return drop(self.fc(x))
""",
)

GOOD = (
    """\
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return nn.Softmax(dim=-1)(nn.ReLU()(x))
""",
    """\
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        if self.head is None:
            self.head = nn.Linear(x.shape[-1], 10).to(x.device)
        return self.head(x)
""",
    """\
from torch import nn

def build(width):
    return nn.Sequential(nn.Linear(width, width), nn.Dropout(0.1))
""",
    """\
from torch import nn

class Net(nn.Module):
    def forward(self, x, y):
        loss = nn.CrossEntropyLoss()
        return loss(x, y)
""",
)
