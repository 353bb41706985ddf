# problem: linear_recurrence
# implementation: torch
# mechanism: the state is written into the answer step by step

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, x):
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        state = torch.zeros_like(x[:, 0])
        for step in range(x.shape[1]):
            state = torch.addcmul(x[:, step], a[:, step], state)
            out[:, step] = state
        return out
