# problem: cumulative_sum
# implementation: torch
# mechanism: every call answers in the same buffer, so an earlier answer changes under its owner
# origin: Sakana AI CUDA Engineer (2025): a re-used output buffer held the reference's result

import torch


BUFFERS = {}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        buffer = BUFFERS.setdefault(tuple(x.shape), torch.empty_like(x))
        torch.cumsum(x, dim=-1, out=buffer)
        return buffer
