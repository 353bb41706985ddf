# problem: modules/problems/soft_target_loss.py
# implementation: torch
# mechanism: logsumexp minus the chosen logit

import torch


class ModelNew(torch.nn.Module):
    def forward(self, logits, target):
        chosen = (logits * target).sum(-1)
        return (torch.logsumexp(logits, -1) - chosen).mean()
