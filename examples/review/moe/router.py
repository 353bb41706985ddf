"""Which experts a token goes to, and with what weight."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Router(nn.Module):
    """Top-k of a softmax over experts, in float32, with losses that keep it in shape."""

    def __init__(self, config):
        super().__init__()
        self.experts = config.experts
        self.top_k = config.top_k
        self.noise = config.noise
        self.score = nn.Linear(config.width, config.experts, bias=False)
        self.load = torch.full((config.experts,), 1.0 / config.experts)

    def forward(self, tokens):
        logits = F.linear(tokens.float(), self.score.weight.float())
        noisy = logits
        if self.noise > 0.0:
            noisy = logits + torch.randn_like(logits) * self.noise
        shares = noisy.softmax(dim=-1)
        weights, chosen = shares.topk(self.top_k, dim=-1)
        weights = weights / weights.sum(dim=0, keepdim=True).clamp(min=1e-9)
        return weights, chosen, self.losses(logits, shares, chosen)

    def losses(self, logits, shares, chosen):
        """How uneven the load is, and how large the logits are."""
        taken = F.one_hot(chosen, self.experts).sum(1).float().mean(0) / self.top_k
        if self.training:
            with torch.no_grad():
                self.load.lerp_(taken, 0.1)
        balance = self.experts * (taken * shares.detach().mean(0)).sum()
        size = logits.logsumexp(dim=-1).square().mean()
        return balance, size
