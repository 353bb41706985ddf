"""A recurrence in torch, and a kernel in C for it.

torchstone kernel verify THIS_FILE
"""

import torch
from torchstone_kernel import library


class Model(torch.nn.Module):
    """h[t] = a[t] * h[t - 1] + b[t] from h = 0, for (batch, time, channel)."""

    def forward(self, a, b):
        states = [b[:, 0]]
        for step in range(1, b.shape[1]):
            states.append(a[:, step] * states[-1] + b[:, step])
        return torch.stack(states, dim=1)


def get_inputs():
    shape = (4, 64, 384)
    return [torch.rand(shape) * 1.8 - 0.9, torch.randn(shape)]


def get_init_inputs():
    return []


C_SOURCE = r"""
void recurrence(const float *a, const float *b, float *h, long rows, long steps, long width) {
  for (long r = 0; r < rows; r++)
    for (long t = 0; t < steps; t++)
      for (long j = 0; j < width; j++) {
        long i = (r * steps + t) * width + j;
        h[i] = b[i] + (t ? a[i] * h[i - width] : 0);
      }
}
"""


class ModelNew(torch.nn.Module):
    """The same, with one call of the C function."""

    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        h = torch.empty_like(b)
        library.recurrence(a, b, h, b.shape[0], b.shape[1], b.shape[2])
        return h
