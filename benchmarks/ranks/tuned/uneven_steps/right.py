"""Ranks have different numbers of batches and reduce gradients by hand.

Origin: uneven inputs: the reason for DDP's join()
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
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
samples = list(range(12))[rank::world]
steps = len(samples)
for step in range(steps):
    model(torch.randn(4, 8)).sum().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
