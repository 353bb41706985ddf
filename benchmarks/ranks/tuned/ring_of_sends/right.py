"""A ring in which every rank sends before it receives.

Origin: ring exchange with blocking sends
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
block = torch.zeros(1 << 20)
after, before = (rank + 1) % world, (rank - 1) % world
received = torch.empty_like(block)
works = [dist.isend(block, after), dist.irecv(received, before)]
for work in works:
    work.wait()
dist.barrier()
dist.destroy_process_group()
