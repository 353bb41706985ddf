# problem: modules/problems/half_rms.py
# implementation: c
# mechanism: half precision in, sums in single

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
void n(const _Float16 *x, _Float16 *y, long r, long c) {
  for (long i = 0; i < r; i++) { float s = 0; for (long j = 0; j < c; j++) { float v = x[i*c+j]; s += v*v; }
    _Float16 k = (_Float16)(1.0f / sqrtf(s / c + 1e-5f));
    for (long j = 0; j < c; j++) y[i*c+j] = (_Float16)((float)k * (float)x[i*c+j]); } }
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        library.n(x, y, x.numel() // max(x.shape[-1], 1), x.shape[-1])
        return y
