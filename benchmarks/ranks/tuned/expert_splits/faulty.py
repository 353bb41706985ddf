"""Tokens go to experts with split sizes that the receivers do not know.

Origin: deepspeed#5794: MoE ranks call all_to_all with different arguments
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
sends = [(rank + other) % 3 + rank for other in range(world)]
tokens = torch.randn(sum(sends), 4)
takes = list(sends)
received = torch.empty(sum(takes), 4)
dist.all_to_all_single(received, tokens, takes, sends)
dist.barrier()
dist.destroy_process_group()
