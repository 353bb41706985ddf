"""More samples of evaluation-in-training-mode."""

BAD = (
    """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1))

def predict(path, x):
    model = Net()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    with torch.no_grad():
        return model(x)
""",
    """\
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.1, self.training)

class Score:
    def __init__(self, device):
        self.model = Net().to(device)

    @torch.no_grad()
    def predict(self, x):
        return self.model(x)
""",
    """\
import torch

def eval_net(net, valid):
    return sum(net(x).mean().item() for x in valid)

def train(net, loader, valid, optimizer):
    for x in loader:
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()
    print(eval_net(net, valid))
""",
    """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))

def main(path, data):
    net = Net().cuda()
    net.load_state_dict(torch.load(path))
    for x in data:
        with torch.no_grad():
            print(net(x))
""",
    """\
import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.d = nn.Linear(4, 1), nn.Dropout(0.2)

@torch.no_grad()
def test(encoder, head, data):
    encoder.eval()
    return [head(encoder(x)) for x in data]

def main(data, val):
    encoder, head = Encoder(), Head()
    for epoch in range(3):
        encoder.train()
        head.train()
        for x in data:
            head(encoder(x)).sum().backward()
        test(encoder, head, val)
""",
)

GOOD = (
    """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

def predict(path, x):
    model = Net()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    with torch.no_grad():
        return model(x)
""",
    """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Dropout(0.1)

def main(path, data):
    net = Net()
    net.load_state_dict(torch.load(path))
    net.eval()
    with torch.no_grad():
        for x in data:
            print(net(x))
""",
    """\
import torch

@torch.no_grad()
def evaluate(model, loader):
    return sum(model(x) for x in loader)

def main(model, valid):
    model.eval()
    print(evaluate(model, valid))
""",
    """\
import torch

@torch.no_grad()
def evaluate(model, loader):
    return sum(model(x) for x in loader)
""",
    """\
import torch
from transformers import AutoModel

def predict(x):
    model = AutoModel.from_pretrained("bert")
    with torch.no_grad():
        return model(x)
""",
    """\
import torch
from switches import eval_mode

@torch.no_grad()
def evaluate(model, loader):
    with eval_mode(model):
        return sum(model(x) for x in loader)

def main(model, valid):
    print(evaluate(model, valid))
""",
)
