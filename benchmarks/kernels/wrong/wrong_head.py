# problem: grouped_query_attention
# implementation: torch
# mechanism: heads are shared modulo the groups instead of in runs
# origin: mechanism: repeat instead of repeat_interleave

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        shared = q.shape[1] // k.shape[1]
        k, v = k.repeat(1, shared, 1, 1), v.repeat(1, shared, 1, 1)
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        return scores.softmax(dim=-1) @ v
