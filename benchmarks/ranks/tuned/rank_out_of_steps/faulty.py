"""One rank leaves the program by sys.exit when its shard is empty.

Origin: a rank that exits early
Expect: DR603
World: 4
"""

import os

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
import sys

shard = list(range(9))[rank * 3 : rank * 3 + 3]
if not shard:
    sys.exit(0)
dist.all_reduce(torch.ones(1))
dist.barrier()
dist.destroy_process_group()
