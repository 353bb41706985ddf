# problem: moe_dispatch
# implementation: torch
# mechanism: weights are scattered, not added, into a table of experts; a token that chose one expert twice loses a weight
# origin: scatter_ where scatter_add_ is meant (torch's documentation: the result is not deterministic for repeated indices)

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, experts, index, weights):
        table = torch.zeros(x.shape[0], experts.shape[0], dtype=weights.dtype)
        table.scatter_(1, index, weights)
        out = torch.zeros(x.shape[0], experts.shape[2], dtype=x.dtype)
        for expert in range(experts.shape[0]):
            tokens = table[:, expert].nonzero().squeeze(1)
            if tokens.numel():
                out[tokens] += (x[tokens] @ experts[expert]) * table[tokens, expert].unsqueeze(1)
        return out
