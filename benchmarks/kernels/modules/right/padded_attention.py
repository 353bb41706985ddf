# problem: modules/problems/padded_attention.py
# implementation: torch
# mechanism: the mask is added to the scores as minus infinity

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v, lengths):
        place = torch.arange(k.shape[1])
        bias = torch.where(place >= lengths.unsqueeze(1), float("-inf"), 0.0).to(q.dtype)
        scores = torch.baddbmm(bias.unsqueeze(1), q, k.mT, alpha=k.shape[-1] ** -0.5)
        return torch.bmm(scores.softmax(-1), v)
