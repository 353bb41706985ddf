# problem: moe_gating
# implementation: numba
# mechanism: the two best by repeated search, then the softmax of both

import numba
import numpy as np
import torch


@numba.njit
def gate(scores, weights, index):
    tokens, experts = scores.shape
    chosen = weights.shape[1]
    for token in range(tokens):
        for k in range(chosen):
            best = -1
            for expert in range(experts):
                taken = False
                for before in range(k):
                    taken = taken or index[token, before] == expert
                if taken:
                    continue
                value = scores[token, expert]
                if best < 0 or value > scores[token, best]:
                    best = expert
                elif np.isnan(value) and not np.isnan(scores[token, best]):
                    best = expert
            index[token, k] = best
        largest, total = float(scores[token, index[token, 0]]), 0.0
        for k in range(chosen):
            total += np.exp(float(scores[token, index[token, k]]) - largest)
        for k in range(chosen):
            weights[token, k] = np.exp(float(scores[token, index[token, k]]) - largest) / total


class ModelNew(torch.nn.Module):
    def __init__(self, chosen):
        super().__init__()
        self.chosen = chosen

    def forward(self, scores):
        shape = (scores.shape[0], self.chosen)
        weights = torch.empty(shape, dtype=scores.dtype)
        index = torch.empty(shape, dtype=torch.int64)
        gate(scores.contiguous().numpy(), weights.numpy(), index.numpy())
        return weights, index
