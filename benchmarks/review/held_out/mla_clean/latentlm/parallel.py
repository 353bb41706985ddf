"""Sequence parallelism: every rank owns one contiguous slice of each sequence."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Optional

import torch
import torch.distributed as dist
from torch import nn


@dataclass(frozen=True)
class SeqParallel:
    rank: int
    size: int


def init_sequence_parallel() -> Optional[SeqParallel]:
    """Join the process group when started by torchrun, otherwise return None."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return None
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return SeqParallel(dist.get_rank(), dist.get_world_size())


def local_slice(length: int, sp: Optional[SeqParallel]) -> slice:
    """The part of a sequence of ``length`` tokens that this rank works on."""
    if sp is None:
        return slice(0, length)
    if length % sp.size:
        raise ValueError(f"sequence length {length} is not a multiple of {sp.size} ranks")
    chunk = length // sp.size
    return slice(sp.rank * chunk, (sp.rank + 1) * chunk)


class _GatherSequence(torch.autograd.Function):
    """All-gather along dim 1. Every rank attends to the gathered tensor."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, sp: SeqParallel) -> torch.Tensor:
        ctx.sp = sp
        parts = [torch.empty_like(x) for _ in range(sp.size)]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, dim=1)

    @staticmethod
    def backward(ctx, grad: torch.Tensor):
        grad = grad.contiguous()
        dist.all_reduce(grad)
        return grad.chunk(ctx.sp.size, dim=1)[ctx.sp.rank], None


def gather_sequence(x: torch.Tensor, sp: Optional[SeqParallel]) -> torch.Tensor:
    return x if sp is None else _GatherSequence.apply(x, sp)


def average_gradients(module: nn.Module, sp: Optional[SeqParallel]) -> None:
    """Average the gradients of the replicated parameters in one flat buffer."""
    if sp is None:
        return
    grads = [p.grad for p in module.parameters()]
    flat = torch.cat([g.reshape(-1) for g in grads])
    dist.all_reduce(flat)
    flat /= sp.size
    offset = 0
    for g in grads:
        g.copy_(flat[offset : offset + g.numel()].view_as(g))
        offset += g.numel()
