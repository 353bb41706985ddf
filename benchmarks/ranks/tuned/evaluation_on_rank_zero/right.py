"""Rank 0 alone evaluates with the DDP model, whose forward broadcasts buffers.

Origin: evaluation of a DDP model with BatchNorm on one rank
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
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if rank == 0:
        with torch.no_grad():
            model.module(torch.randn(2, 8))
dist.barrier()
dist.destroy_process_group()
