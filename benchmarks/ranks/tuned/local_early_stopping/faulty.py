"""Each rank decides by its own loss whether to stop.

Origin: early stopping on a metric that was not reduced
Expect: DR601 DR603
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
for step in range(4):
    loss = model(torch.randn(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    measured = loss.detach().clone()
    if measured.item() > 100:
        break
dist.barrier()
dist.destroy_process_group()
