"""More samples of find-unused-parameters."""

BAD = (
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

def block(layer, x):
    return checkpoint(layer, x, use_reentrant=True)

def build(net):
    return DDP(net, find_unused_parameters=True)
""",
)

GOOD = (
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def build(net, args):
    return DDP(net, find_unused_parameters=args.unused)
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def build(net):
    return DDP(net, static_graph=True)
""",
)
