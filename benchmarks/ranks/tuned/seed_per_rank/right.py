"""Every rank makes weights of its own, and gradients are averaged by hand.

Origin: averaging gradients by hand (pytorch tutorials, dist_tuto) with a seed per rank and no broadcast
Expect: clean
World: 4
"""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
for parameter in model.parameters():
    dist.broadcast(parameter.data, 0)
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
dist.barrier()
dist.destroy_process_group()
