# problem: modules/problems/alibi_attention.py
# implementation: torch
# mechanism: queries one by one, the sum of exponentials divided at the end

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v, slope):
        n = q.shape[-2]
        place = torch.arange(n)
        rows = []
        for i in range(n):
            score = (k * q[..., i : i + 1, :]).sum(-1) * q.shape[-1] ** -0.5
            score = score - slope.unsqueeze(1) * (place - i).abs()
            weight = (score - score.amax(-1, keepdim=True)).exp()
            rows.append((weight.unsqueeze(-1) * v).sum(-2) / weight.sum(-1, keepdim=True))
        return torch.stack(rows, dim=-2)
