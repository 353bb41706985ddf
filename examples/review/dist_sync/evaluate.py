"""The error of a network over all ranks."""

import argparse

import torch
import torch.distributed as dist

from data import Points
from model import Network
from ranks import start, stop


@torch.no_grad()
def squared_error(model, points, rank, world, device):
    """Sum and count over this rank's share, then over all."""
    model.eval()
    inputs, values = points.inputs[rank::world].to(device), points.values[rank::world].to(device)
    error = (model(inputs) - values).square().sum()
    figures = torch.stack((error, torch.tensor(float(len(values)), device=device)))
    dist.all_reduce(figures)
    return figures


@torch.no_grad()
def largest_errors(model, points, rank, world, device, count=4):
    """The largest errors of every rank, gathered."""
    inputs, values = points.inputs[rank::world].to(device), points.values[rank::world].to(device)
    errors = (model(inputs) - values).abs().topk(count).values
    gathered = [torch.empty_like(errors) for _ in range(world)]
    dist.all_gather(gathered, errors)
    return torch.cat(gathered).topk(count).values


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1024)
    args = parser.parse_args()
    rank, world, device = start()
    torch.manual_seed(0)
    model = Network().to(device)
    points = Points(args.samples, seed=1)
    error, count = squared_error(model, points, rank, world, device)
    largest = largest_errors(model, points, rank, world, device)
    if rank == 0:
        dist.barrier()
        print(f"mean squared error {error / count:.4f}, largest {largest.tolist()}")
    stop()


if __name__ == "__main__":
    main()
