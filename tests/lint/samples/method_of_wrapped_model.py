"""More samples of method-of-wrapped-model."""

BAD = (
    """\
import torch
from torch import nn

def train(model, loader):
    for x in loader:
        model.sample(x)

def main(net, loader):
    model = nn.DataParallel(net)
    train(model, loader)
""",
)

GOOD = (
    """\
import torch
from torch import nn

def main(net, x, several):
    model = net
    if several:
        model = nn.DataParallel(model)
    state = model.module.state_dict() if several else model.state_dict()
    return model(x), state, net.generate(x)
""",
)
