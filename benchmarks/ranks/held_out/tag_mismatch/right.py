"""A message is sent with one tag and received with another.

Origin: tags of send and recv must agree
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
value = torch.zeros(4)
if rank == 0:
    dist.send(value, 1, tag=7)
elif rank == 1:
    dist.recv(value, 0, tag=7)
dist.barrier()
dist.destroy_process_group()
