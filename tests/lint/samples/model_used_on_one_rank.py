"""More samples of model-used-on-one-rank."""

BAD = (
    """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def main(net, valid):
    model = DDP(net)
    if dist.get_rank() == 0:
        with torch.no_grad():
            for x in valid:
                model(x)
""",
    """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def evaluate(net, valid):
    return [net(x) for x in valid]

def main(net, valid, rank):
    model = DDP(net)
    if rank == 0:
        evaluate(model, valid)
""",
    """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def evaluate(net, valid):
    if dist.get_rank() != 0:
        return
    for x in valid:
        net(x)

def main(net, valid):
    model = DDP(net)
    evaluate(model, valid)
""",
)

GOOD = (
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def save(net, rank, path, valid):
    model = DDP(net)
    if rank == 0:
        torch.save(model.state_dict(), path)
        model.module(valid)
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def main(net, rank, x):
    model = DDP(net, broadcast_buffers=False)
    if rank == 0:
        model(x)
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def main(net, rank, x):
    model = DDP(net)
    if rank == 0:
        loss = model(x)
    else:
        loss = model(x * 2)
    return loss
""",
)
