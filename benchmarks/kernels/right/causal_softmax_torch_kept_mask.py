# problem: causal_softmax
# implementation: torch
# mechanism: the mask of a length is made once and kept; answers are not

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.masks = {}

    def forward(self, scores):
        length = scores.shape[-1]
        if length not in self.masks:
            self.masks[length] = torch.ones(length, length, dtype=torch.bool).triu(1)
        return scores.masked_fill(self.masks[length], float("-inf")).softmax(dim=-1)
