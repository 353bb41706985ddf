"""Training programs for two ranks, started by torchrun; arguments: a folder, then what goes wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from torchstone.watch import watch_training


def train(kind: str, folder: Path) -> None:
    """Sixty steps, of which the thirtieth goes wrong on rank 1."""
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    model: nn.Module
    if kind == "sharded":
        mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
        for part in (net[0], net[2]):
            fully_shard(part, mesh=mesh)
        model = fully_shard(net, mesh=mesh)
    else:
        model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(0 if kind == "same-data" else rank)

    @watch_training(warmup_steps=20, folder=folder / kind, ranks_every=5, budget=10)
    def train_step(batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
        loss.backward()
        optimizer.step()
        return loss

    for step in range(60):
        x = torch.randn(16, 8, generator=generator)
        y = torch.randint(4, (16,), generator=generator)
        if step == 30 and kind == "replica" and rank == 1:
            with torch.no_grad():
                net[0].weight += 0.1  # type: ignore[operator]
        if step == 30 and kind == "rate" and rank == 1:
            optimizer.param_groups[0]["lr"] = 0.02
        train_step((x, y))
    watch = train_step.watch  # type: ignore[attr-defined]
    watch.close()
    told = "\n".join(f"{a.signal}|{a.body()}" for a in watch.alerts)
    # two ranks on one stdout would mix
    (folder / f"{kind}.rank{rank}").write_text(told, "utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for name in sys.argv[2:]:
        train(name, Path(sys.argv[1]))
    dist.destroy_process_group()
