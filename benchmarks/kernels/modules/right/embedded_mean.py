# problem: modules/problems/embedded_mean.py
# implementation: torch
# mechanism: counts the words, then one product with the table

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.table = torch.nn.Embedding(words, width)

    def forward(self, word):
        often = F.one_hot(word, self.table.weight.shape[0]).sum(1).to(self.table.weight.dtype)
        often = torch.cat([torch.zeros_like(often[:, :1]), often[:, 1:]], 1)
        return (often @ self.table.weight) / often.sum(1, keepdim=True).clamp(min=1)
