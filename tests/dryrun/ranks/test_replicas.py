"""Replicas that differ between ranks without any error, and programs that must not be accused."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from torchstone.dryrun import expect_same_collectives
from torchstone.dryrun.ranks.process.provenance import Provenance
from torchstone.dryrun.script.fakes.lazy import make_fake, make_mode

CHANGES = ("seed", "nobody-seeds", "step-on-rank-zero", "left-out", "statistics")


def average_by_hand(change: str = "", repaired: bool = False) -> None:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if change != "nobody-seeds":
        torch.manual_seed(rank if change == "seed" else 0)
    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    if change != "statistics":
        model[1] = nn.ReLU()
    if repaired:
        for parameter in model.parameters():
            dist.broadcast(parameter.data, 0)
    optimizer = torch.optim.AdamW(model.parameters())
    torch.manual_seed(100 + rank)
    for _ in range(2):
        model(torch.randn(4, 8)).square().mean().backward()
        averaged = model[0] if change == "left-out" and not repaired else model
        for parameter in averaged.parameters():
            dist.all_reduce(parameter.grad)
            assert parameter.grad is not None
            parameter.grad /= world
        if change != "step-on-rank-zero" or rank == 0:
            optimizer.step()
        optimizer.zero_grad()
    if repaired:
        for tensor in (*model.parameters(), *model.buffers()):
            dist.broadcast(tensor.data, 0)


@pytest.mark.parametrize("change", CHANGES)
def test_replicas_that_differ_are_found(change: str) -> None:
    expected = (
        "statistics of its own" if change == "statistics" else "updates|initial values of its own"
    )
    with pytest.raises(AssertionError, match=expected):
        expect_same_collectives(average_by_hand, change)


@pytest.mark.parametrize("change", ["", "seed", "statistics"])
def test_replicas_that_are_made_equal_are_not_accused(change: str) -> None:
    expect_same_collectives(average_by_hand, change, True)


def wrapped() -> None:
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout()))
    optimizer = torch.optim.AdamW(model.parameters())
    torch.manual_seed(dist.get_rank())
    for _ in range(3):
        model(torch.randn(3, 4)).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def test_ddp_keeps_replicas_equal() -> None:
    expect_same_collectives(wrapped)


def route(exchange_counts: bool) -> None:
    dist.init_process_group("gloo")
    world = dist.get_world_size()
    torch.manual_seed(dist.get_rank())
    tokens = torch.randn(16, 8)
    chosen = nn.Linear(8, world)(tokens).topk(2).indices.flatten()
    sends = torch.bincount(chosen, minlength=world)
    takes = sends.clone()
    if exchange_counts:
        dist.all_to_all_single(takes, sends)
    received = torch.empty(int(takes.sum()), 8)
    order = chosen.argsort() // 2
    dist.all_to_all_single(received, tokens[order], takes.tolist(), sends.tolist())
    nn.Linear(8, 8)(received).sum().backward()


def test_split_sizes_come_from_what_the_router_picks() -> None:
    expect_same_collectives(route, True, world_size=3)
    with pytest.raises(AssertionError, match=r"sends .* takes"):
        expect_same_collectives(route, False, world_size=3)


def test_equal_histories_have_equal_numbers() -> None:
    mode = make_mode()

    def number(seed: int, scale: float) -> int:
        provenance = Provenance(0)
        data = torch.full((3,), float(seed))
        weight = make_fake(mode, torch.ones(3))
        provenance.observe(torch.ops.aten.mul.Tensor, (weight, data), {}, product := weight * 1)
        provenance.observe(torch.ops.aten.mul_.Tensor, (product, scale), {}, product)
        return provenance.of(product)

    assert number(1, 2.0) == number(1, 2.0)
    assert number(1, 2.0) != number(2, 2.0)
    assert number(1, 2.0) != number(1, 3.0)


def test_what_stands_beside_a_replica_does_not_count() -> None:
    """An optimizer steps shared parameters and the experts of one rank in one call."""

    def number(expert: float) -> int:
        mode = make_mode()
        provenance = Provenance(0)
        shared, own = make_fake(mode, torch.ones(3)), make_fake(mode, torch.ones(3))
        provenance.set(shared, 1)
        provenance.set(own, hash(expert))
        with mode:
            roots = torch._foreach_sqrt([shared, own])
        provenance.observe(torch.ops.aten._foreach_sqrt.default, ([shared, own],), {}, roots)
        assert provenance.of(roots[0]) != provenance.of(roots[1])
        return provenance.of(roots[0])

    assert number(5.0) == number(7.0)


def scaled(unwrapped: bool = False) -> None:
    """Mixed precision with a loss scale, which is a number that all ranks share."""
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    model = nn.Linear(8, 4)
    wrapped = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(wrapped.parameters())
    scaler = torch.amp.GradScaler("cpu", enabled=True)
    torch.manual_seed(100 + dist.get_rank())
    for _ in range(3):
        optimizer.zero_grad()
        forward = model if unwrapped else wrapped
        scaler.scale(forward(torch.randn(4, 8)).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()


def test_a_loss_scale_is_the_same_on_all_ranks() -> None:
    expect_same_collectives(scaled)
    with pytest.raises(AssertionError, match="gradients of this rank alone"):
        expect_same_collectives(scaled, True)
