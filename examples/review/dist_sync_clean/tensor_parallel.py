"""The hidden layer split over ranks: columns of the first product, rows of the second."""

import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from data import Points
from ranks import groups_of, start, stop


class SumOverRanks(torch.autograd.Function):
    """Adds the parts of all ranks; the gradient goes to each of them."""

    @staticmethod
    def forward(ctx, part, group):
        whole = part.clone()
        dist.all_reduce(whole, group=group)
        return whole

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class SplitNetwork(nn.Module):
    """Each rank holds a share of the hidden units."""

    def __init__(self, width, share, group):
        super().__init__()
        self.group = group
        self.columns = nn.Linear(8, width // share)
        self.rows = nn.Linear(width // share, 1, bias=False)

    def forward(self, x):
        part = self.rows(F.gelu(self.columns(x)))
        return SumOverRanks.apply(part, self.group).squeeze(-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--width", type=int, default=32)
    args = parser.parse_args()
    rank, world, device = start()
    torch.manual_seed(rank)
    group = groups_of(world, world)[0]
    model = SplitNetwork(args.width, world, group).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    points = Points(64)
    for step in range(args.steps):
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(points.inputs.to(device)), points.values.to(device))
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"loss {loss:.4f}")
    stop()


if __name__ == "__main__":
    main()
