# problem: modules/problems/soft_target_loss.py
# implementation: torch
# mechanism: divides by the classes instead of the rows
# origin: mechanism: divides by the classes instead of the rows

import torch


class ModelNew(torch.nn.Module):
    def forward(self, logits, target):
        chosen = (logits * target).sum(-1)
        return (torch.logsumexp(logits, -1) - chosen).sum() / logits.shape[1]
