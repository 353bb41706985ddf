# problem: modules/problems/sums_of_lengths.py
# implementation: c
# mechanism: lengths become offsets on the host

import torch
from torchstone_kernel import library

C_SOURCE = r"""
void s(const float *x, float *y, long off, long n, long c, long at) {
  for (long j = 0; j < c; j++) { float a = 0; for (long i = 0; i < n; i++) a += x[off + i*c + j]; y[at*c + j] = a; } }
"""


class ModelNew(torch.nn.Module):
    def forward(self, x, lengths):
        x = x.contiguous()
        b, t, c = x.shape
        y = torch.empty(b, c)
        for i, n in enumerate(lengths.tolist()):
            library.s(x, y, i * t * c, min(max(n if n >= 0 else t + n, 0), t), c, i)
        return y
