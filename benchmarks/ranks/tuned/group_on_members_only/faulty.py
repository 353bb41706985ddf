"""new_group is called by the members of the group alone.

Origin: torch's documentation of new_group
Expect: DR605
World: 4
"""

import os

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
if rank < 2:
    pair = dist.new_group([0, 1])
if rank < 2:
    dist.all_reduce(torch.ones(1), group=pair)
dist.barrier()
dist.destroy_process_group()
