"""One rank takes the maximum where the others take the sum.

Origin: a reduce operation chosen by rank
Expect: DR602
World: 4
"""

import os

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
value = torch.ones(1)
kind = dist.ReduceOp.MAX if rank == 0 else dist.ReduceOp.SUM
dist.all_reduce(value, op=kind)
dist.barrier()
dist.destroy_process_group()
