"""Gradients are synchronised at a boundary that depends on the rank's own count.

Origin: no_sync with an accumulation boundary computed per rank
Expect: clean
World: 4
"""

import os

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
import contextlib

from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
every = 2
for step in range(4):
    last = (step + 1) % every == 0
    with contextlib.nullcontext() if last else model.no_sync():
        model(torch.randn(4, 8)).sum().backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
