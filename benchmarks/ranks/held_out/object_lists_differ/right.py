"""broadcast_object_list with lists of different length.

Origin: broadcast_object_list needs lists of equal length on all ranks
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
objects = ["config", 1, 2] if rank == 0 else [None, None, None]
dist.broadcast_object_list(objects, src=0)
dist.barrier()
dist.destroy_process_group()
