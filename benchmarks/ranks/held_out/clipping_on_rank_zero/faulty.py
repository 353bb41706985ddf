"""The gradient norm of a sharded model is computed on rank 0 alone.

Origin: clip_grad_norm_ of a sharded model is a collective
Expect: DR601 DR602 DR603
World: 4
"""

import os

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
from torch.distributed.fsdp import fully_shard

model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    model(torch.randn(4, 8)).sum().backward()
    if rank == 0:
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        print("norm", norm.full_tensor())
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
