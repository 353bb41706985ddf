# problem: modules/problems/padded_attention.py
# implementation: torch
# mechanism: sees one position beyond the length
# origin: mechanism: sees one position beyond the length

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v, lengths):
        beyond = torch.arange(k.shape[1]) > lengths.unsqueeze(1)
        scores = q @ k.transpose(-2, -1) * (k.shape[-1] ** -0.5)
        return scores.masked_fill(beyond.unsqueeze(1), float("-inf")).softmax(-1) @ v
