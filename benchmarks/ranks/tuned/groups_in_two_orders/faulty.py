"""Two groups are reduced in different orders on different ranks.

Origin: collectives on overlapping groups must have one order: NCCL documentation
Expect: DR604
World: 4
"""

import os

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
everyone = dist.new_group(list(range(world)))
half = dist.new_group([0, 1])
value = torch.ones(4)
if rank == 0:
    dist.all_reduce(value, group=everyone)
    dist.all_reduce(value, group=half)
elif rank == 1:
    dist.all_reduce(value, group=half)
    dist.all_reduce(value, group=everyone)
else:
    dist.all_reduce(value, group=everyone)
dist.barrier()
dist.destroy_process_group()
