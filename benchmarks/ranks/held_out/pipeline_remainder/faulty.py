"""The last micro-batch is smaller, and the next stage expects the full size.

Origin: pipeline stages with a remainder micro-batch
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
batch, size = 10, 4
pieces = [size] * (batch // size) + ([batch % size] if batch % size else [])
for piece in pieces:
    if rank > 0:
        hidden = torch.empty(size, 8)
        dist.recv(hidden, rank - 1)
    else:
        hidden = torch.randn(piece, 8)
    if rank + 1 < world:
        dist.send(hidden, rank + 1)
dist.destroy_process_group()
