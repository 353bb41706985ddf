"""The full state dict of a sharded model is collected by rank 0 alone.

Origin: FSDP: state dict gathered inside `if rank == 0`
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
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard

model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(4, 8)).sum().backward()
optimizer.step()
options = StateDictOptions(full_state_dict=True)
state = get_model_state_dict(model, options=options)
dist.barrier()
dist.destroy_process_group()
