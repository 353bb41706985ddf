"""More samples of collective-under-local-condition."""

BAD = (
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(net, loader, optimizer):
    model = DDP(net)
    for x, y in loader:
        loss = model(x, y)
        if torch.isnan(loss):
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
)

GOOD = (
    """\
import torch
import torch.distributed as dist

def reduce(loss):
    bad = (~torch.isfinite(loss)).float()
    dist.all_reduce(bad)
    if bad.item() == 0:
        dist.all_reduce(loss)
    return loss
""",
    """\
import torch
import torch.distributed as dist

def reduce(loss):
    if torch.isfinite(loss):
        dist.all_reduce(loss)
    else:
        dist.all_reduce(torch.zeros_like(loss))
    if dist.is_initialized():
        dist.barrier()
""",
    """\
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        loss = model(x, y)
        if torch.isnan(loss):
            continue
        loss.backward()
        optimizer.step()
""",
    """\
import torch
import torch.distributed as dist

def reduce(loss):
    if torch.isnan(loss).any():
        raise RuntimeError("diverged")
    dist.all_reduce(loss)
""",
    """\
import torch.distributed as dist

def reduce(rewards):
    if rewards.numel() > 0:
        dist.all_reduce(rewards)
""",
)
