"""Tensor-parallel linear layers (Megatron style) and the model."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from .mesh import Mesh


class _CopyToGroup(torch.autograd.Function):
    """Identity forward, sum of the gradients backward."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


class _SumOverGroup(torch.autograd.Function):
    """Sum forward, identity backward."""

    @staticmethod
    def forward(ctx, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def _shard(size: int, mesh: Mesh, what: str) -> int:
    if size % mesh.tp:
        raise ValueError(f"{what}={size} cannot be split over {mesh.tp} ranks")
    return size // mesh.tp


class ColumnLinear(nn.Module):
    """The output features are split over the tensor-parallel group."""

    def __init__(self, n_in, n_out, mesh):
        super().__init__()
        self.mesh = mesh
        local = _shard(n_out, mesh, "n_out")
        self.weight = nn.Parameter(torch.randn(local, n_in) * n_in ** -0.5)
        self.bias = nn.Parameter(torch.zeros(local))
        self.weight.shard_dim = self.bias.shard_dim = 0

    def forward(self, x):
        if self.mesh.tp > 1:
            x = _CopyToGroup.apply(x, self.mesh.tp_group)
        return F.linear(x, self.weight, self.bias)


class RowLinear(nn.Module):
    """The input features are split, partial results are summed."""

    def __init__(self, n_in, n_out, mesh):
        super().__init__()
        self.mesh = mesh
        local = _shard(n_in, mesh, "n_in")
        self.weight = nn.Parameter(torch.randn(n_out, local) * n_in ** -0.5)
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.weight.shard_dim = 1

    def forward(self, x):
        y = F.linear(x, self.weight)
        if self.mesh.tp > 1:
            y = _SumOverGroup.apply(y, self.mesh.tp_group)
        return y + self.bias


class Block(nn.Module):
    def __init__(self, dim, hidden, mesh):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = ColumnLinear(dim, hidden, mesh)
        self.down = RowLinear(hidden, dim, mesh)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, cfg, mesh):
        super().__init__()
        self.stem = nn.Linear(cfg.features, cfg.dim)
        self.blocks = nn.ModuleList(Block(cfg.dim, cfg.hidden, mesh) for _ in range(cfg.blocks))
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.classes)
        self.aux_head = nn.Linear(cfg.dim, 1)

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            h = block(h)
        return self.norm(h)

    def loss(self, x, y, aux):
        """Classification plus a regression for the examples that carry a target."""
        h = self(x)
        loss = F.cross_entropy(self.head(h), y)
        known = ~torch.isnan(aux)
        if known.any():
            diff = self.aux_head(h[known]).squeeze(-1) - aux[known]
            loss = loss + 0.1 * diff.pow(2).sum() / len(x)
        return loss


def copy_replicated(model: nn.Module, mesh: Mesh) -> None:
    """Give unsplit parameters the values of the first rank of the group."""
    if mesh.tp == 1:
        return
    source = mesh.rank - mesh.tp_rank
    for p in model.parameters():
        if not hasattr(p, "shard_dim"):
            dist.broadcast(p.data, source, group=mesh.tp_group)
