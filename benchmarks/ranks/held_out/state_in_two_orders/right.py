"""Weights are broadcast in the order of two different containers.

Origin: manual broadcast of a checkpoint by name order on one rank only
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
model = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 2))
state = {name: value.detach().clone() for name, value in model.state_dict().items()}
names = sorted(state)
for name in names:
    dist.broadcast(state[name], src=0)
dist.barrier()
dist.destroy_process_group()
