# problem: moe_dispatch
# implementation: torch
# mechanism: one expert after another, its tokens gathered and added back

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, experts, index, weights):
        out = torch.zeros((x.shape[0], experts.shape[2]), dtype=x.dtype, device=x.device)
        for expert in range(experts.shape[0]):
            token, k = (index == expert).nonzero(as_tuple=True)
            out.index_add_(0, token, (x[token] @ experts[expert]) * weights[token, k].unsqueeze(-1))
        return out
