"""Every rank expects as many tokens as it sends.

Origin: deepspeed#5794, megablocks: split sizes from local routing counts
Expect: DR602
World: 4
"""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
gate = nn.Linear(8, world)
expert = nn.Linear(8, 8)
optimizer = torch.optim.SGD([*gate.parameters(), *expert.parameters()], lr=0.1)
torch.manual_seed(rank)
for step in range(2):
    tokens = torch.randn(16, 8)
    chosen = gate(tokens).argmax(-1)
    order = chosen.argsort()
    sends = torch.bincount(chosen, minlength=world)
    takes = torch.empty_like(sends)
    takes.copy_(sends)
    received = torch.empty(int(takes.sum()), 8)
    dist.all_to_all_single(received, tokens[order], takes.tolist(), sends.tolist())
    done = expert(received)
    back = torch.empty(16, 8)
    dist.all_to_all_single(back, done.detach(), sends.tolist(), takes.tolist())
    done.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
