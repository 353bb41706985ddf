"""A training program for two ranks, started by torchrun; its argument names what goes wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from torchstone.watch import watch_training

WHAT, FOLDER = sys.argv[1], sys.argv[2]

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.set_num_threads(1)
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
if WHAT == "sharded":
    for part in (net[0], net[2]):
        fully_shard(part, mesh=dist.device_mesh.init_device_mesh("cpu", (2,)))
    model = fully_shard(net, mesh=dist.device_mesh.init_device_mesh("cpu", (2,)))
else:
    model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
generator = torch.Generator().manual_seed(0 if WHAT == "same-data" else rank)


@watch_training(warmup_steps=20, folder=FOLDER, ranks_every=5, budget=10)
def train_step(batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
    return loss


for step in range(60):
    x = torch.randn(16, 8, generator=generator)
    y = torch.randint(4, (16,), generator=generator)
    if step == 30 and WHAT == "replica" and rank == 1:
        with torch.no_grad():
            net[0].weight += 0.1
    if step == 30 and WHAT == "rate" and rank == 1:
        optimizer.param_groups[0]["lr"] = 0.02
    train_step((x, y))

watch = train_step.watch  # type: ignore[attr-defined]
watch.close()
told = "\n".join(f"{a.signal}|{a.body()}" for a in watch.alerts)
Path(f"{FOLDER}.rank{rank}").write_text(told, "utf-8")  # two ranks on one stdout would mix
dist.destroy_process_group()
