"""More samples of changed-after-ddp."""

BAD = (
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def build(net, rank):
    model = DDP(net)
    for p in model.module.backbone.parameters():
        p.requires_grad = False
    return model
""",
)

GOOD = (
    """\
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

def build(net, rank):
    net.head = nn.Linear(512, 10)
    net.backbone.requires_grad_(False)
    return DDP(net)
""",
    """\
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

def stages(net, loader):
    model = DDP(net)
    train(model, loader)
    net.backbone.requires_grad_(True)
    model = DDP(net)
    train(model, loader)
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def build(net, teacher):
    model = DDP(net)
    teacher.requires_grad_(False)
    model.step = 0
    return model
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def main(net, loader, optimizer, rank):
    model = DDP(net, device_ids=[rank])
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    for parameter in model.module.parameters():
        parameter.requires_grad = False
    return model
""",
)
