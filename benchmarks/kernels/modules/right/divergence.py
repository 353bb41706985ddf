# problem: modules/problems/divergence.py
# implementation: torch
# mechanism: an expectation of the difference of the logarithms, without what has no weight

import torch


class ModelNew(torch.nn.Module):
    def forward(self, logits, other):
        log_p = other - torch.logsumexp(other, -1, keepdim=True)
        log_q = logits - torch.logsumexp(logits, -1, keepdim=True)
        p = log_p.exp()
        part = torch.where(p == 0, torch.zeros_like(p), p * (log_p - log_q))
        return part.sum() / logits.shape[0]
