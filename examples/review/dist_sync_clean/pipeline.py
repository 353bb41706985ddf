"""The network in two stages on two ranks."""

import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F

from data import Points
from model import Network
from ranks import start, stop


def first_stage(stage, optimizer, inputs, micro_batches):
    """Send activations forward, receive their gradients, step."""
    optimizer.zero_grad(set_to_none=True)
    for part in inputs.chunk(micro_batches):
        hidden = stage(part)
        dist.send(hidden.detach(), dst=1)
        gradient = torch.empty_like(hidden)
        dist.recv(gradient, src=1)
        hidden.backward(gradient)
    optimizer.step()


def last_stage(stage, optimizer, values, micro_batches, width):
    """Receive activations, send back their gradients, step."""
    optimizer.zero_grad(set_to_none=True)
    total = torch.zeros(())
    for part in values.chunk(micro_batches):
        hidden = torch.empty(len(part), width, requires_grad=True)
        dist.recv(hidden.data, src=0)
        loss = F.mse_loss(stage(hidden), part)
        (loss / micro_batches).backward()
        dist.send(hidden.grad, dst=0)
        total += loss.detach() / micro_batches
    optimizer.step()
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--micro-batches", type=int, default=4)
    args = parser.parse_args()
    rank, world, _ = start()
    if world != 2:
        raise SystemExit("the pipeline has two stages: start it on two ranks")
    torch.manual_seed(0)
    stage = Network(dropout=0.0).stages()[rank]
    optimizer = torch.optim.SGD(stage.parameters(), lr=1e-2)
    points = Points(64)
    for step in range(args.steps):
        if rank == 0:
            first_stage(stage, optimizer, points.inputs, args.micro_batches)
        else:
            loss = last_stage(stage, optimizer, points.values, args.micro_batches, 32)
            print(f"step {step}: loss {loss:.4f}")
    stop()


if __name__ == "__main__":
    main()
