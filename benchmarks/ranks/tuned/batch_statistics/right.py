"""Running statistics of batch normalisation stay local, and are saved from one rank.

Origin: DistributedDataParallel(broadcast_buffers=False) or averaging by hand, with BatchNorm
Expect: clean
World: 4
"""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
optimizer = torch.optim.AdamW(model.parameters())
torch.manual_seed(100 + rank)
for step in range(3):
    loss = model(torch.randn(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world
    optimizer.step()
for buffer in model.buffers():
    if buffer.is_floating_point():
        dist.all_reduce(buffer)
        buffer /= world
dist.barrier()
dist.destroy_process_group()
