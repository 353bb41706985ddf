"""More samples of moved-after-ddp."""

BAD = (
    """\
import torch

def run(net, loader, device):
    net = torch.nn.parallel.DistributedDataParallel(net)
    net.to(device)
    for x in loader:
        net(x).sum().backward()
""",
)

GOOD = (
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def run(rank, model, x):
    model = DDP(model.to(rank), device_ids=[rank])
    model = model.to(rank)
    model(x).sum().backward()
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def run(rank, model, loader, path):
    model = DDP(model.cuda(rank))
    for x in loader:
        model(x).sum().backward()
    model.cpu()
    torch.save(model.module.state_dict(), path)
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def run(rank, model, x, many):
    if many:
        model = DDP(model)
    else:
        model = model.cuda()
    return model(x)
""",
)
