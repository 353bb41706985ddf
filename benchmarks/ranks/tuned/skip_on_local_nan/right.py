"""A step with a bad loss is skipped on the rank that has it, not on the others.

Origin: rank-local condition around a collective: Neuron_SP#589
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

model = DistributedDataParallel(nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.randn(4, 8)).square().mean()
    bad = torch.isnan(loss)
    votes = bad.float()
    dist.all_reduce(votes)
    if votes.item() > 0:
        continue
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
