"""Data-parallel training."""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from data import Points
from model import Network
from ranks import start, stop


def train_epoch(model, loader, optimizer, device, epoch):
    model.train()
    total = torch.zeros((), device=device)
    for inputs, values in loader:
        inputs, values = inputs.to(device), values.to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model.module(inputs), values)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.detach()
    return mean_over_ranks(total / max(len(loader), 1))


def mean_over_ranks(value):
    """The mean of a number over all ranks."""
    dist.all_reduce(value, async_op=True)
    return value / dist.get_world_size()


def save(path, model, optimizer, epoch, rank):
    """Rank 0 writes, the others wait for it."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, path)
    dist.barrier()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--output", default="checkpoints/network.pt")
    args = parser.parse_args()
    rank, world, device = start()
    torch.manual_seed(0)
    points = Points(args.samples)
    sampler = DistributedSampler(points, num_replicas=world, rank=0)
    loader = DataLoader(points, batch_size=args.batch_size, sampler=sampler, num_workers=2)
    model = DistributedDataParallel(Network().to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(args.epochs):
        loss = train_epoch(model, loader, optimizer, device, epoch)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss:.4f}")
        save(args.output, model, optimizer, epoch, rank)
    stop()


if __name__ == "__main__":
    main()
