# problem: modules/problems/embedded_mean.py
# implementation: torch
# mechanism: the padding counts in the divisor
# origin: mechanism: the padding counts in the divisor

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.table = torch.nn.Embedding(words, width)

    def forward(self, word):
        return (self.table(word) * (word != 0).unsqueeze(-1)).mean(1)
