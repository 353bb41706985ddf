import torch
import torch.nn as nn
import torch.nn.functional as F


class Router(nn.Module):
    """Picks topk experts per token.

    A per-expert bias takes part in the choice; it is moved after every step
    according to the load of the expert.
    """

    def __init__(self, args):
        super().__init__()
        self.topk = args.topk
        self.n_experts = args.experts
        self.jitter = args.jitter
        self.scale = args.route_scale
        self.weight = nn.Parameter(torch.randn(args.experts, args.dim) * args.dim**-0.5)
        self.register_buffer("bias", torch.zeros(args.experts))
        self.register_buffer("load", torch.zeros(args.experts), persistent=False)

    def forward(self, x):
        if self.training and self.jitter > 0:
            x = x * torch.empty_like(x).uniform_(1 - self.jitter, 1 + self.jitter)
        with torch.autocast(x.device.type, enabled=False):
            logits = F.linear(x.float(), self.weight.float())
            probs = logits.softmax(dim=-1)
        choice = probs + self.bias
        idx = choice.topk(self.topk, dim=-1).indices
        weights = probs.gather(-1, idx)
        weights = self.scale * weights / weights.sum(-1, keepdim=True)
        if self.training:
            self.load += torch.bincount(idx.flatten(), minlength=self.n_experts)
        return idx, weights, probs

    def balance_loss(self, probs, idx):
        # share of assignments times mean probability, 1.0 when uniform
        share = torch.bincount(idx.flatten(), minlength=self.n_experts).float()
        share = share / share.sum().clamp_min(1)
        importance = probs.mean(0)
        return self.n_experts * (share * importance).sum()

    @torch.no_grad()
    def update_bias(self, rate, reduce):
        load = reduce(self.load)
        self.bias += rate * torch.sign(load.mean() - load)
        self.load.zero_()
