# problem: modules/problems/dilated_conv1d.py
# implementation: torch
# mechanism: a sum of shifted products, one for each tap

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        taps = weight.shape[2]
        x = F.pad(x, (4, 4))
        n = x.shape[2] - 2 * (taps - 1)
        parts = [weight[:, :, t] @ x[:, :, 2 * t : 2 * t + n] for t in range(taps)]
        return torch.stack(parts).sum(0)
