"""A capacity limit is put on what is sent after the counts were exchanged.

Origin: capacity factor of switch transformers applied to the sender alone
Expect: DR602
World: 4
"""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
import torch.distributed._functional_collectives as functional

torch.manual_seed(0)
gate = nn.Linear(8, world)
expert = nn.Linear(8, 8)
optimizer = torch.optim.SGD([*gate.parameters(), *expert.parameters()], lr=0.1)
torch.manual_seed(rank)
for step in range(2):
    tokens = torch.randn(16, 8)
    scores, chosen = gate(tokens).softmax(-1).topk(2, dim=-1)
    order = chosen.flatten().argsort()
    counts = torch.nn.functional.one_hot(chosen, world).sum((0, 1))
    takes = functional.wait_tensor(
        functional.all_to_all_single(counts, None, None, dist.group.WORLD)
    )
    ins, outs = [min(count, 9) for count in counts.tolist()], takes.tolist()
    order = order[: sum(ins)]
    received = functional.all_to_all_single_autograd(
        tokens[order // 2], outs, ins, dist.group.WORLD
    )
    back = functional.all_to_all_single_autograd(expert(received), ins, outs, dist.group.WORLD)
    (back * scores.flatten()[order].unsqueeze(-1)).sum().backward()
    for parameter in gate.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
