# problem: causal_attention
# implementation: torch
# mechanism: a position does not see itself
# origin: mechanism: off by one in a causal mask

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        length = q.shape[-2]
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        ahead = torch.ones(length, length, dtype=torch.bool).triu(0)
        ahead[0, 0] = False
        return scores.masked_fill(ahead, float("-inf")).softmax(dim=-1) @ v
