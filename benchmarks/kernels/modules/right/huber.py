# problem: modules/problems/huber.py
# implementation: torch
# mechanism: the two branches, chosen by the size of the error

import torch


class ModelNew(torch.nn.Module):
    def forward(self, prediction, target):
        error = (prediction - target).abs()
        small = torch.clamp(error, max=1.0)
        return (0.5 * small * small + (error - small)).mean()
