"""One rank of a tensor-parallel pair skips the all_reduce of its layer.

Origin: a conditional inside a row-parallel layer
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
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
mine = pairs[rank // 2]
weight = nn.Parameter(torch.randn(8, 4))
for step in range(2):
    part = torch.randn(2, 8) @ weight
    dist.all_reduce(part, group=mine)
    if rank % 2 == 0:
        print("logged", step)
dist.barrier()
dist.destroy_process_group()
