# problem: modules/problems/divergence.py
# implementation: torch
# mechanism: the divergence in the other direction
# origin: mechanism: the divergence in the other direction

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def forward(self, logits, other):
        return F.kl_div(other.log_softmax(-1), logits.softmax(-1), reduction="batchmean")
