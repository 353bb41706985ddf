"""`SyncBatchNorm` on ranks that share the CPU under the name of CUDA: torch has its kernels for GPUs only.

The statistics are exchanged by the same collectives: an all_gather in the forward, an all_reduce in the backward.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from torchstone.dryrun.script.patches import put


def synchronise_statistics() -> None:
    """From now on such layers run on tensors of any device."""
    original = nn.SyncBatchNorm.forward

    def forward(layer: nn.SyncBatchNorm, x: torch.Tensor) -> torch.Tensor:
        group = layer.process_group or (dist.group.WORLD if dist.is_initialized() else None)
        if not layer.training or group is None or dist.get_world_size(group) == 1:
            return nn.functional.batch_norm(
                x, layer.running_mean, layer.running_var, layer.weight, layer.bias,
                layer.training or layer.running_mean is None, layer.momentum or 0.0, layer.eps,
            )  # fmt: skip
        layer._check_input_dim(x)
        return _normalise(layer, x, group)

    forward.__wrapped__ = original  # type: ignore[attr-defined]
    put(nn.SyncBatchNorm, "forward", forward)
    put(DistributedDataParallel, "_passing_sync_batchnorm_handle", lambda *_: None)


def _normalise(layer: nn.SyncBatchNorm, x: torch.Tensor, group: Any) -> torch.Tensor:
    sides = [side for side in range(x.dim()) if side != 1]
    shape = [1, -1, *(1 for _ in sides[1:])]
    values = x.detach().float()
    count = values.new_full((1,), values.numel() // values.shape[1])
    own = torch.cat([values.mean(sides), values.square().mean(sides), count])
    gathered = own.new_empty(dist.get_world_size(group), own.numel())
    dist.all_gather_into_tensor(gathered, own, group=group)
    mean, square = gathered.mean(0)[:-1].chunk(2)
    variance = square - mean.square()
    with torch.no_grad():
        for kept, new in ((layer.running_mean, mean), (layer.running_var, variance)):
            if kept is not None:
                kept.lerp_(new, layer.momentum if layer.momentum is not None else 0.1)
        if layer.num_batches_tracked is not None:
            layer.num_batches_tracked.add_(1)
    x = _ReducedInBackward.apply(x, group)  # type: ignore[no-untyped-call]
    scale = torch.rsqrt(variance + layer.eps)
    made = (x - mean.view(shape).to(x.dtype)) * scale.view(shape).to(x.dtype)
    if not layer.affine:
        return made
    return made * layer.weight.view(shape).to(x.dtype) + layer.bias.view(shape).to(x.dtype)


class _ReducedInBackward(torch.autograd.Function):
    """Its gradient waits for the sums of all ranks."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        sides = [side for side in range(gradient.dim()) if side != 1]
        sums = gradient.sum(sides)
        dist.all_reduce(torch.cat([sums, sums]), group=ctx.group)
        return gradient, None
