# problem: moe_dispatch
# implementation: numba
# mechanism: an expert serves at most twenty of its calls and silently drops the rest
# origin: Lepikhin et al. 2020 (arXiv 2006.16668): expert capacity, here where the problem has none

import numba
import torch


@numba.njit
def dispatch(x, experts, index, weights, served, out):
    for token in range(x.shape[0]):
        for choice in range(index.shape[1]):
            expert = index[token, choice]
            if served[expert] >= 20:
                continue
            served[expert] += 1
            for j in range(experts.shape[2]):
                total = 0.0
                for d in range(x.shape[1]):
                    total += x[token, d] * experts[expert, d, j]
                out[token, j] += weights[token, choice] * total


class ModelNew(torch.nn.Module):
    def forward(self, x, experts, index, weights):
        out = torch.zeros((x.shape[0], experts.shape[2]))
        served = torch.zeros(experts.shape[0], dtype=torch.int64)
        dispatch(
            x.numpy(), experts.numpy(), index.numpy(), weights.numpy(), served.numpy(), out.numpy()
        )
        return out
