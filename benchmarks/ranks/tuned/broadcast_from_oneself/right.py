"""Every rank names itself as the source of a broadcast.

Origin: src given as the own rank
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
weights = torch.full((4,), float(rank))
dist.broadcast(weights, src=0)
dist.barrier()
dist.destroy_process_group()
