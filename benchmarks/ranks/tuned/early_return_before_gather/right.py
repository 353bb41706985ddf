"""A helper returns before its collective on ranks without results.

Origin: an early return before all_gather_object in a public pull request
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


def collect(results):
    results = results or []
    everything = [None] * world
    dist.all_gather_object(everything, results)
    return everything


results = [] if rank == 2 else [rank]
collect(results)
dist.barrier()
dist.destroy_process_group()
