"""A barrier that only rank 0 reaches.

Origin: the pattern behind many NCCL time-outs, e.g. NVIDIA/nccl#296
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
flag = torch.ones(1)
dist.all_reduce(flag)
if rank == 0:
    print("saved")
dist.barrier()
dist.all_reduce(flag)
dist.barrier()
dist.destroy_process_group()
