"""More samples of frozen-parameters-in-optimizer."""

BAD = (
    """\
import torch

def build(net):
    net.requires_grad_(False)
    return torch.optim.SGD(net.head.parameters(), lr=0.1)
""",
    """\
import torch

def attack(x):
    return torch.optim.Adam([x.detach()], lr=0.1)
""",
)

GOOD = (
    """\
import torch
from torch import nn, optim

model = resnet18()
for param in model.parameters():
    param.requires_grad = False
model.fc = nn.Linear(512, 2)
optimizer = optim.SGD(model.parameters(), lr=0.1)
""",
    """\
import torch

def build(net):
    net.backbone.requires_grad_(False)
    return torch.optim.SGD(net.parameters(), lr=0.1)
""",
    """\
import torch

def build(net):
    for p in net.parameters():
        p.requires_grad = False
    for p in net.head.parameters():
        p.requires_grad = True
    return torch.optim.SGD(net.parameters(), lr=0.1)
""",
    """\
import torch

def build(net):
    net.requires_grad_(False)
    add_adapters(net)
    return torch.optim.SGD(net.parameters(), lr=0.1)
""",
    """\
import torch

def attack(x):
    delta = x.detach().requires_grad_()
    return torch.optim.Adam([delta, x.detach().clone().requires_grad_(True)], lr=0.1)
""",
)
