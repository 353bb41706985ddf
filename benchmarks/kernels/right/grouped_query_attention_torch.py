# problem: grouped_query_attention
# implementation: torch
# mechanism: the query heads of a group as one axis, nothing repeated

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        batch, heads, length, width = q.shape
        groups = k.shape[1]
        grouped = q.reshape(batch, groups, heads // groups, length, width)
        scores = torch.einsum("bghqd,bgkd->bghqk", grouped, k) * width**-0.5
        mixed = torch.einsum("bghqk,bgkd->bghqd", scores.softmax(dim=-1), v)
        return mixed.reshape(batch, heads, length, width)
