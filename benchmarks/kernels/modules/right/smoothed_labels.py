# problem: modules/problems/smoothed_labels.py
# implementation: torch
# mechanism: a mixture of the label's and the mean logarithm

import torch


class ModelNew(torch.nn.Module):
    def forward(self, logits, label):
        logarithm = logits - torch.logsumexp(logits, -1, keepdim=True)
        own = logarithm.gather(1, label.unsqueeze(1)).squeeze(1)
        return -(0.9 * own + 0.1 * logarithm.mean(-1)).mean()
