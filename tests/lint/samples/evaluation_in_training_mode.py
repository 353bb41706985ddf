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
        return x

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
)

GOOD = (
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
