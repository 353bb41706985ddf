"""Neighbours send to each other first and receive afterwards.

Origin: the textbook deadlock of blocking sends
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
outgoing, incoming = torch.zeros(1 << 20), torch.zeros(1 << 20)
peer = rank ^ 1
if rank < peer:
    dist.send(outgoing, peer)
    dist.recv(incoming, peer)
else:
    dist.recv(incoming, peer)
    dist.send(outgoing, peer)
dist.barrier()
dist.destroy_process_group()
