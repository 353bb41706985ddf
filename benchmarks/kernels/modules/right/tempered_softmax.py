# problem: modules/problems/tempered_softmax.py
# implementation: torch
# mechanism: exponentials written out, shifted by the maximum

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, temperature):
        z = x / temperature
        e = (z - z.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)
