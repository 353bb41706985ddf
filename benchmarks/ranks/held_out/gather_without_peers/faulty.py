"""gather is called by the destination and one more rank only.

Origin: a gather under a rank condition in a logging helper
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


def log(value):
    parts = [torch.empty_like(value) for _ in range(world)] if rank == 0 else None
    dist.gather(value, parts, dst=0)


for step in range(2):
    if rank <= 1:
        log(torch.ones(1))
dist.barrier()
dist.destroy_process_group()
