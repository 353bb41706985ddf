"""An error on one rank is swallowed together with the collective behind it.

Origin: collective inside try with a broad except
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
total = torch.zeros(1)
for step in range(3):
    try:
        if rank == 1 and step == 1:
            raise ValueError("bad sample")
    except ValueError:
        print("skipped")
    dist.all_reduce(total)
dist.barrier()
dist.destroy_process_group()
