# problem: modules/problems/window_attention.py
# implementation: torch
# mechanism: each query with the slice of its window

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        rows = []
        for i in range(q.shape[1]):
            low = max(0, i - 3)
            score = torch.einsum("bd,bjd->bj", q[:, i], k[:, low : i + 1]) / q.shape[-1] ** 0.5
            rows.append(torch.einsum("bj,bjd->bd", score.softmax(-1), v[:, low : i + 1]))
        return torch.stack(rows, dim=1)
