"""Feed-forward experts and the layer that sends tokens to them."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from router import Router


class Expert(nn.Module):
    """A gated feed-forward network."""

    def __init__(self, config):
        super().__init__()
        self.gate = nn.Linear(config.width, config.expert_width, bias=False)
        self.up = nn.Linear(config.width, config.expert_width, bias=False)
        self.down = nn.Linear(config.expert_width, config.width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class ExpertLayer(nn.Module):
    """Every token gets the weighted sum of its experts, and a shared one."""

    def __init__(self, config):
        super().__init__()
        self.router = Router(config)
        self.experts = nn.ModuleList(Expert(config) for _ in range(config.experts))
        self.shared = Expert(config)

    def forward(self, x):
        batch, length, width = x.shape
        tokens = x.reshape(-1, width)
        weights, chosen, losses = self.router(tokens)
        order = chosen.flatten().argsort(stable=True)
        counts = torch.bincount(chosen.flatten(), minlength=len(self.experts)).tolist()
        rows = order % chosen.shape[0]
        groups = tokens[rows].split(counts)
        outputs = torch.cat([expert(group) for expert, group in zip(self.experts, groups)])
        outputs = outputs.float() * weights.flatten()[order, None]
        mixed = torch.zeros_like(tokens, dtype=torch.float32)
        mixed = mixed.index_copy(0, rows, outputs)
        return (mixed + self.shared(tokens)).to(x.dtype).view(batch, length, width), losses
