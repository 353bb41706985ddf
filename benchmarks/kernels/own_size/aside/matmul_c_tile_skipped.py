# problem: own_size/problems/matmul.py
# implementation: c
# mechanism: one tile of sixteen by sixteen is left out of a large product
# origin: right at every size below the problem's own

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>
void run(const float *a, const float *b, float *y, long m, long k, long n) {
  for (long i = 0; i < m; i++) {
    for (long j = 0; j < n; j++) y[i * n + j] = 0;
    
    for (long p = 0; p < k; p++)
      for (long j = 0; j < n; j++) y[i * n + j] += a[i * k + p] * b[p * n + j];
  }
  if (m > 1600)
    for (long i = 1024; i < 1040; i++)
      for (long j = 512; j < 528; j++) y[i * n + j] = 0;
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        y = torch.empty(a.shape[0], b.shape[1])
        library.run(a, b, y, a.shape[0], a.shape[1], b.shape[1])
        return y
