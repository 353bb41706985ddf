import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from . import comm
from .router import Router


class Experts(nn.Module):
    """The experts owned by this rank, as stacked weights."""

    def __init__(self, n_local, dim, hidden):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(n_local, dim, hidden) * dim**-0.5)
        self.w2 = nn.Parameter(torch.randn(n_local, hidden, dim) * hidden**-0.5)
        self.w1.is_expert = self.w2.is_expert = True

    def forward(self, rows, sizes):
        """rows are sorted by local expert, sizes[e] of them each."""
        outs = []
        for e, part in enumerate(rows.split(sizes)):
            outs.append(F.gelu(part @ self.w1[e]) @ self.w2[e])
        return torch.cat(outs)


class MoE(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.n_experts, self.topk = args.experts, args.topk
        self.capacity_factor = args.capacity_factor
        if args.experts % comm.world():
            raise ValueError("--experts must be a multiple of the number of ranks")
        self.n_local = args.experts // comm.world()
        self.router = Router(args)
        self.experts = Experts(self.n_local, args.dim, args.hidden)
        self.dropped = 0.0

    def capacity(self, n_tokens):
        return max(4, math.ceil(self.capacity_factor * n_tokens / self.n_experts))

    def forward(self, x, mask):
        """x (batch, time, dim), mask (batch, time) is True for real tokens."""
        flat = x[mask]
        idx, weights, probs = self.router(flat)
        aux = self.router.balance_loss(probs, idx) if len(flat) else flat.sum()

        # one row per (token, slot), sorted by expert
        token = torch.arange(len(flat), device=x.device).repeat_interleave(self.topk)
        expert, gate = idx.flatten(), weights.flatten()
        order = expert.argsort(stable=True)
        token, expert, gate = token[order], expert[order], gate[order]

        # keep the first `capacity` rows of every expert
        counts = torch.bincount(expert, minlength=self.n_experts)
        first = counts.cumsum(0) - counts
        place = torch.arange(len(expert), device=x.device) - first[expert]
        keep = place < self.capacity(len(flat))
        token, expert, gate = token[keep], expert[keep], gate[keep]
        self.dropped = 1.0 - keep.float().mean() if len(keep) else 0.0
        counts = torch.bincount(expert, minlength=self.n_experts)

        y = self.run_experts(flat[token], counts)
        out = torch.zeros_like(flat)
        out[token] = (y * gate[:, None]).to(out.dtype)
        full = torch.zeros_like(x)
        full[mask] = out
        return full, aux

    def run_experts(self, rows, counts):
        counts = counts.view(comm.world(), self.n_local)
        incoming = comm.exchange_counts(counts)
        send, recv = torch.stack([counts.sum(1), incoming.sum(1)]).tolist()
        rows = comm.exchange(rows, send, recv)

        # rows arrive grouped by source rank, experts want them grouped by expert
        local = torch.arange(self.n_local, device=rows.device).repeat(comm.world())
        order = local.repeat_interleave(incoming.flatten()).argsort(stable=True)
        sizes = incoming.sum(0).tolist()
        done = self.experts(rows[order], sizes)
        back = torch.empty_like(done)
        back[order] = done
        return comm.exchange(back, recv, send)
