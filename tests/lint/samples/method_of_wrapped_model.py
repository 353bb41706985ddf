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
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def main(model, rank, gpus, compiled):
    is_distributed = gpus > 1
    if is_distributed:
        model = DDP(model, device_ids=[rank])
    if compiled:
        assert not is_distributed, "one process only"
        model.head.decode = False
    return model
""",
)
