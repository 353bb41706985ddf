# problem: modules/problems/nearest_centre.py
# implementation: torch
# mechanism: one centre after the other, the best so far is kept

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, centres):
        best = torch.zeros(x.shape[0], dtype=torch.int64)
        least = (x - centres[0]).square().sum(-1)
        for i in range(1, centres.shape[0]):
            far = (x - centres[i]).square().sum(-1)
            nearer = (far < least) | (far.isnan() & ~least.isnan())
            best = torch.where(nearer, i, best)
            least = torch.where(nearer, far, least)
        return best
