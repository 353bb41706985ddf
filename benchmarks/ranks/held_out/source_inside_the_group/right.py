"""The source of a broadcast is given as a rank of the group, not of the world.

Origin: src is a global rank: torch's documentation
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
groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
mine = groups[rank // 2]
value = torch.full((2,), float(rank))
dist.broadcast(value, src=rank // 2 * 2, group=mine)
dist.barrier()
dist.destroy_process_group()
