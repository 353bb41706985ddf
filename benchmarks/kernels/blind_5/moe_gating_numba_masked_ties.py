# problem: moe_gating
# implementation: numba
# mechanism: after each pick every score that equals the best is masked, so experts that tie with
#   the best are never chosen beside it
# origin: RL-Align/RL-Kernel pull 215 (z == z_max marks all ties), vllm-project/vllm pull
#   42608 (selected scores overwritten in place)

import numpy as np
import torch
from numba import njit


@njit
def choose(scores, values, index, chosen):
    rows, experts = scores.shape
    left = np.empty(experts, scores.dtype)
    for row in range(rows):
        left[:] = scores[row]
        for pick in range(chosen):
            best = 0
            for expert in range(1, experts):
                if left[expert] > left[best]:
                    best = expert
            top = left[best]
            values[row, pick] = scores[row, best]
            index[row, pick] = best
            for expert in range(experts):
                if left[expert] == top:
                    left[expert] = -np.inf
        largest = values[row, 0]
        total = 0.0
        for pick in range(chosen):
            values[row, pick] = np.exp(values[row, pick] - largest)
            total += values[row, pick]
        for pick in range(chosen):
            values[row, pick] /= total


class ModelNew(torch.nn.Module):
    def __init__(self, chosen):
        super().__init__()
        self.chosen = chosen

    def forward(self, scores):
        rows = scores.contiguous().reshape(-1, scores.shape[-1])
        values = torch.empty(rows.shape[0], self.chosen, dtype=scores.dtype)
        index = torch.empty(rows.shape[0], self.chosen, dtype=torch.int64)
        choose(rows.numpy(), values.numpy(), index.numpy(), self.chosen)
        shape = (*scores.shape[:-1], self.chosen)
        return values.reshape(shape), index.reshape(shape)
