# problem: mla_absorbed
# implementation: torch
# mechanism: instead of taking out the maximum, scores are held below forty; above, they are all the same
# origin: clamping before exp as a guard against overflow, a common short cut in generated softmax kernels

import math

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, up_k, c, up_v):
        scores = torch.matmul(torch.matmul(q, up_k), c.T) / math.sqrt(q.shape[-1])
        grown = scores.clamp(min=-40.0, max=40.0).exp()
        mixed = torch.matmul(grown, c) / grown.sum(dim=-1, keepdim=True)
        return torch.matmul(mixed, up_v)
