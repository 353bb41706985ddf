"""More samples of softmax-before-cross-entropy."""

BAD = (
    """\
from torch import nn

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(dim=1))
criterion = nn.CrossEntropyLoss()
for x, y in loader:
    out = model(x)
    loss = criterion(out, y)
""",
    """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        x = self.fc(x)
        return self.softmax(x)

def train(net, criterion, loader):
    for x, y in loader:
        criterion(net(x), y).backward()

def main():
    net = Net().cuda()
    loss_fn = nn.CrossEntropyLoss()
    train(net, loss_fn, loader)
""",
)

GOOD = (
    """\
import torch.nn.functional as F

def loss_of(model, x, y):
    logits = model(x)
    probs = F.softmax(logits, dim=1)
    return F.cross_entropy(logits, y), probs
""",
    """\
import torch.nn.functional as F

def distill(student, teacher):
    return F.cross_entropy(student, F.softmax(teacher, dim=-1))
""",
    """\
import torch.nn.functional as F

def loss_of(model, x, y):
    return F.nll_loss(F.log_softmax(model(x), dim=1), y)
""",
    """\
import torch.nn.functional as F

def loss_of(model, x, y, probabilities):
    out = model(x)
    if probabilities:
        out = out.softmax(-1)
        return F.nll_loss(out.log(), y)
    return F.cross_entropy(out, y)
""",
    """\
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        if self.training:
            return self.fc(x)
        return self.fc(x).softmax(-1)

net = Net()
criterion = nn.CrossEntropyLoss()
loss = criterion(net(x), y)
""",
)
