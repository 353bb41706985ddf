"""More samples of ddp-wrapped-twice."""

GOOD = (
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def build(net, rank, unused):
    if unused:
        net = DDP(net, find_unused_parameters=True)
    else:
        net = DDP(net)
    return net
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def rebuild(net):
    net = DDP(net)
    train(net)
    net = net.module
    return DDP(net)
""",
)
