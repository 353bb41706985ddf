# problem: modules/problems/smoothed_labels.py
# implementation: torch
# mechanism: spreads the smoothing over the other classes only
# origin: mechanism: spreads the smoothing over the other classes only

import torch


class ModelNew(torch.nn.Module):
    def forward(self, logits, label):
        logarithm = logits.log_softmax(-1)
        own = logarithm.gather(1, label.unsqueeze(1)).squeeze(1)
        rest = (logarithm.sum(-1) - own) / (logits.shape[-1] - 1)
        return -(0.9 * own + 0.1 * rest).mean()
